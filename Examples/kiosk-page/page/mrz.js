// What opens a document's chip, from what a customer types.  ICAO Doc 9303, parts 3 to 6 and 11.

const weights = [7, 3, 1];

/** The check digit of Doc 9303-3, 4.9. */
export function checkDigit(field) {
  let sum = 0;
  for (const [index, letter] of [...field].entries()) {
    const value = letter === "<" ? 0 : parseInt(letter, 36);
    sum += value * weights[index % 3];
  }
  return String(sum % 10);
}

// Where a form has number, birth and expiry, each with its check digit behind it: line, start, length.
const forms = {
  "2x44": { number: [1, 0, 9], birth: [1, 13, 6], expiry: [1, 21, 6] }, // TD3, Doc 9303-4
  "2x36": { number: [1, 0, 9], birth: [1, 13, 6], expiry: [1, 21, 6] }, // TD2, Doc 9303-6
  "3x30": { number: [0, 5, 9], birth: [1, 0, 6], expiry: [1, 8, 6] }, // TD1, Doc 9303-5
};

/** The key in lines of the machine-readable zone, or what is wrong with them. */
export function fromLines(typed) {
  const letters = typed.toUpperCase().replace(/[^A-Z0-9<]/g, "");
  const sizes = { 88: [2, 44], 72: [2, 36], 90: [3, 30] };
  const size = sizes[letters.length];
  if (!size) return { wrong: { mrz: "wrong.mrz.form" } };
  const lines = Array.from({ length: size[0] }, (_, index) => letters.slice(index * size[1], (index + 1) * size[1]));
  for (const [name, [line, start, length]] of Object.entries(forms[size.join("x")])) {
    const digit = lines[line][start + length];
    // A number of more than nine letters goes on in the optional data: Doc 9303-5, note j; the chip will tell.
    if (name === "number" && digit === "<") continue;
    if (digit !== checkDigit(lines[line].slice(start, start + length))) return { wrong: { mrz: "wrong.mrz.digits" } };
  }
  return { key: { mrz: lines.join("\n") } };
}

/** Day, month and year of eight digits as YYMMDD; null if there is no such day. */
export function date(typed) {
  const digits = typed.replace(/\D/g, "");
  if (digits.length !== 8) return null;
  const [day, month, year] = [digits.slice(0, 2), digits.slice(2, 4), digits.slice(4)];
  const made = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day)));
  const isDay = made.getUTCDate() === Number(day) && made.getUTCMonth() === Number(month) - 1;
  return isDay && Number(year) >= 1900 ? year.slice(2) + month + day : null;
}

function fromFields({ number, birth, expiry }) {
  const documentNumber = number.toUpperCase().replace(/[\s-]/g, "");
  const [dateOfBirth, dateOfExpiry] = [date(birth), date(expiry)];
  const wrong = {};
  if (!/^[A-Z0-9<]{1,22}$/.test(documentNumber)) wrong.number = "wrong.number";
  if (!dateOfBirth) wrong.birth = "wrong.date";
  if (!dateOfExpiry) wrong.expiry = "wrong.date";
  return Object.keys(wrong).length > 0 ? { wrong } : { key: { documentNumber, dateOfBirth, dateOfExpiry } };
}

function fromNumber({ can }) {
  const digits = can.replace(/\s/g, "");
  return /^[0-9]{6}$/.test(digits) ? { key: { can: digits } } : { wrong: { can: "wrong.can" } };
}

/** The members of nfc.read's data, or the fields that are wrong with the text that says why. */
export function documentKey(method, fields) {
  if (method === "mrz") return fromLines(fields.mrz);
  return method === "can" ? fromNumber(fields) : fromFields(fields);
}

/** A date of a document (YYYY-MM-DD or YYMMDD) for people; what is none stays as it is. */
export function shownDate(value, lang, isPast) {
  const match = /^(\d{2}|\d{4})-?(\d{2})-?(\d{2})$/.exec(value);
  if (!match) return value;
  let year = Number(match[1]);
  // Two digits: a birth is never ahead, an expiry is of this century.
  if (match[1].length === 2) year += 2000 - (isPast && 2000 + year > new Date().getFullYear() ? 100 : 0);
  const made = new Date(Date.UTC(year, Number(match[2]) - 1, Number(match[3])));
  return new Intl.DateTimeFormat(lang, { dateStyle: "long", timeZone: "UTC", numberingSystem: "latn" }).format(made);
}
