// The page's end of the kiosk bridge: requests, events, reconnection.  No dependencies.
// What comes from the service is checked before the page sees it.

export const protocolVersion = 1;
export const subprotocol = "kiosk.bridge.v1";

const limits = {
  message: 16 * 1024 * 1024, // UTF-16 units of one message of the host
  list: 1000, // elements of a list
  text: 4096, // letters of a text
  binary: 16 * 1024 * 1024, // letters of base64
  inFlight: 16, // requests without an answer
  outgoing: 64 * 1024, // bytes of one message of the page
  held: 64, // events that wait for the host's proof
};

// Milliseconds until the page gives up.
const timeouts = {
  other: 30_000,
  "camera.document.capture": 120_000,
  "nfc.read": 180_000,
  "pass.read": 120_000,
  "payment.start": 300_000,
};

const backOff = { first: 250, last: 5_000 };
const openWithin = 10_000;

/** A request that failed. */
export class BridgeError extends Error {
  constructor(code, message, { recoverable = false, correlationId = null } = {}) {
    super(message);
    this.name = "BridgeError";
    this.code = code;
    this.recoverable = recoverable;
    this.correlationId = correlationId;
  }
}

// Shapes: a function, a list of one shape, or an object of shapes; optional members end with "?".

const text = (value) => typeof value === "string" && value.length <= limits.text;
const flag = (value) => typeof value === "boolean";
const whole = (value) => Number.isSafeInteger(value) || (text(value) && /^-?[0-9]{1,40}$/.test(value));
const count = (value) => Number.isSafeInteger(value) && value >= 0;
const part = (value) => typeof value === "number" && value >= 0 && value <= 1;
const base64 = (value) =>
  typeof value === "string" && value.length <= limits.binary && /^[A-Za-z0-9+/]*={0,2}$/.test(value);
const oneOf = (...values) => (value) => values.includes(value);
const orNull = (shape) => (value) => value === null || conforms(value, shape);
const anything = () => true;
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

function conforms(value, shape) {
  if (typeof shape === "function") return shape(value);
  if (Array.isArray(shape)) {
    return Array.isArray(value) && value.length <= limits.list && value.every((element) => conforms(element, shape[0]));
  }
  if (!isObject(value)) return false;
  return Object.entries(shape).every(([name, member]) => {
    const key = name.replace(/\?$/, "");
    return Object.hasOwn(value, key) ? conforms(value[key], member) : key !== name;
  });
}

const money = { amount: whole, currency: text, exponent: count, text };
const image = { imageData: base64, mimeType: oneOf("image/jpeg", "image/png", "image/webp"), width: count, height: count };
const order = { id: text, lines: [{ title: text, quantity: whole, total: money }], total: money };
const verdict = oneOf("yes", "no", "unknown");
const outcome = oneOf("approved", "declined", "unknown");
const paymentState = oneOf(
  "idle", "presentCard", "reading", "removeCard", "processing", "seePhone", "tryAgain", "otherCard", "approved",
  "declined", "cancelled", "unknown", "outOfService");
const capability = {
  supported: flag,
  version: text,
  permissionState: oneOf("granted", "denied", "prompt", "unavailable"),
  "reason?": text,
};
const capabilities = (value) =>
  isObject(value) && Object.keys(value).length <= 100 && Object.values(value).every((one) => conforms(one, capability));
const documentFields = [
  "type", "issuer", "number", "name", "surname", "givenNames", "nationality", "dateOfBirth", "sex", "dateOfExpiry",
];
const documentAnswer = {
  chipRead: flag,
  dataGroups: [text],
  document: Object.fromEntries(documentFields.map((name) => [name, text])),
  "portrait?": image,
  security: { authentic: verdict, chipGenuine: verdict, access: text, "expired?": flag, findings: [text] },
};
const ndefAnswer = { records: [{ type: text, "text?": text, "uri?": text }] };

const answers = {
  "bridge.hello": { proof: text },
  "capability.query": { hostVersion: text, protocolVersion: count, capabilities },
  "camera.document.capture": { ...image, quality: { sharpness: part, glare: part, coverage: part } },
  "nfc.read": (value) => conforms(value, documentAnswer) || conforms(value, ndefAnswer),
  "order.get": { order: orNull(order) },
  "payment.start": {
    outcome,
    amount: money,
    "message?": text,
    "loyalty?": { member: text, saved: money },
    receipt: flag,
  },
  "payment.cancel": { cancelled: flag },
  "pass.read": { passes: [{ merchant: text, status: text, "member?": text }] },
  "receipt.print": { printed: flag },
};

const snapshot = {
  inService: flag,
  "background?": flag,
  order: orNull(order),
  payment: orNull({ order: text, state: paymentState, "outcome?": outcome }),
  capabilities,
};
const events = {
  "host.ready": { hostVersion: text, protocolVersion: count, timestamp: anything, snapshot },
  "host.capabilitiesChanged": { capabilities },
  "host.outOfService": { inService: flag },
  "host.locale": { locale: text },
  "host.headphones": { connected: flag },
  "journey.cancel": { reason: text },
  "nfc.progress": { request: text, step: oneOf("present", "access", "reading", "checking"), fraction: part },
  "payment.state": { order: text, state: paymentState },
};

const envelope = {
  v: count,
  type: oneOf("request", "response", "event"),
  correlationId: (value) => typeof value === "string" && /^[A-Za-z0-9_-]{1,64}$/.test(value),
  payload: { action: text, "data?": isObject },
  "status?": oneOf("success", "unsupported", "cancelled", "error"),
  "error?": { code: (value) => text(value) && /^[A-Z][A-Z0-9_]{0,63}$/.test(value), message: text, recoverable: flag },
};

const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
const ascii = (letters) => new TextEncoder().encode(letters);
const tokenForm = /^[0-9a-f]{32}$/;

/** A token that the server has put into this page, once. */
function tokenOfPage() {
  for (const element of document.querySelectorAll('meta[name="kiosk-token"]')) {
    if (tokenForm.test(element.content)) return element.content;
  }
  return null;
}

/**
 * A connection to the kiosk's host, which comes back by itself; kiosk-bridge.d.ts says what its members do.
 *
 * Events of the host are dispatched under their own names, with their data as `detail`.  The bridge's own: `open`
 * (the snapshot), `occupied` (by another page), `lost` ({code}), `refused` (the BridgeError; it does not come back),
 * `told` (the sequence of the host's event that was dispatched before it).
 */
export class KioskBridge extends EventTarget {
  #token;
  #socket = null;
  #proven = false;
  #sequence = 0;
  #held = [];
  #pending = new Map();
  #attempts = 0;
  #timer = null;
  #waiting = [];
  #wanted = null; // or an object that each connect() makes anew
  #embedded;

  constructor() {
    super();
    this.#token = tokenOfPage();
    this.#embedded = this.#token !== null;
  }

  get isEmbedded() {
    return this.#embedded;
  }

  get isOpen() {
    return this.#proven;
  }

  connect() {
    if (!this.#embedded || this.#wanted) return;
    this.#wanted = {};
    this.#open();
  }

  close() {
    this.#wanted = null;
    clearTimeout(this.#timer);
    this.#settleWaiting(new BridgeError("DISCONNECTED", "closed by the page", { recoverable: true }));
    this.#drop(1000);
  }

  on(name, handler) {
    const listener = (event) => handler(event.detail);
    this.addEventListener(name, listener);
    return () => this.removeEventListener(name, listener);
  }

  async request(action, data = {}, { timeout = timeouts[action] ?? timeouts.other, signal } = {}) {
    if (!this.#embedded) throw new BridgeError("UNSUPPORTED", "there is no host");
    const end = performance.now() + timeout;
    if (!this.#proven) await this.#opened(timeout);
    return await this.#ask(action, data, end - performance.now(), signal);
  }

  send(action, data = {}) {
    if (this.#proven) this.#write("event", crypto.randomUUID(), action, data);
  }

  #opened(timeout) {
    return new Promise((resolve, reject) => {
      const waiting = {
        resolve,
        reject,
        timer: setTimeout(() => {
          this.#waiting = this.#waiting.filter((one) => one !== waiting);
          reject(new BridgeError("DISCONNECTED", "no connection in time", { recoverable: true }));
        }, timeout),
      };
      this.#waiting.push(waiting);
    });
  }

  #settleWaiting(error) {
    for (const one of this.#waiting.splice(0)) {
      clearTimeout(one.timer);
      if (error) one.reject(error);
      else one.resolve();
    }
  }

  #ask(action, data, timeout, signal) {
    const correlationId = crypto.randomUUID();
    const failure = (code, message, recoverable = true) => new BridgeError(code, message, { recoverable, correlationId });
    if (signal?.aborted) return Promise.reject(failure("CANCELLED", "given up by the page"));
    if (this.#pending.size >= limits.inFlight) return Promise.reject(failure("BUSY", "too many requests at once"));
    return new Promise((resolve, reject) => {
      const settle = (finish, value) => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", abort);
        if (this.#pending.delete(correlationId)) finish(value);
      };
      const abort = () => settle(reject, failure("CANCELLED", "given up by the page"));
      const timer = setTimeout(() => settle(reject, failure("TIMEOUT", "no answer in time")), timeout);
      signal?.addEventListener("abort", abort);
      this.#pending.set(correlationId, {
        action,
        resolve: (value) => settle(resolve, value),
        reject: (error) => settle(reject, error),
      });
      if (!this.#write("request", correlationId, action, data)) {
        settle(reject, failure("INVALID_REQUEST", "the request cannot be sent", false));
      }
    });
  }

  #write(type, correlationId, action, data) {
    const message = JSON.stringify({ v: protocolVersion, type, correlationId, payload: { action, data } });
    if (ascii(message).length > limits.outgoing || this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(message);
    return true;
  }

  async #open() {
    const wanted = this.#wanted;
    const { token, occupied } = this.#token ? { token: this.#token } : await freshToken();
    this.#token = null;
    // The page may have closed it meanwhile, and may even have connected again.
    if (this.#wanted !== wanted) return;
    if (token) this.#join(token);
    else this.#again();
    if (occupied) this.#dispatch("occupied", {});
  }

  #join(token) {
    const address = new URL("/bridge", location.href);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(address, [subprotocol, `auth.${token}`]);
    this.#socket = socket;
    const isCurrent = () => this.#socket === socket;
    const hurry = setTimeout(() => isCurrent() && !this.#proven && this.#drop(4408), openWithin);
    socket.onopen = () => {
      if (!isCurrent()) return;
      if (socket.protocol !== subprotocol) return this.#refuse("VERSION_MISMATCH", "another protocol");
      this.#prove(token, isCurrent);
    };
    socket.onmessage = (event) => isCurrent() && this.#receive(event.data);
    socket.onclose = (event) => {
      clearTimeout(hurry);
      if (isCurrent()) this.#lost(event.code);
    };
  }

  /** The host shows that it knows the token: nobody else gets what the customer types. */
  async #prove(token, isCurrent) {
    const nonce = hex(crypto.getRandomValues(new Uint8Array(16)));
    const key = await crypto.subtle.importKey("raw", ascii(token), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
    const expected = hex(new Uint8Array(await crypto.subtle.sign("HMAC", key, ascii(nonce))));
    if (!isCurrent()) return;
    let proof;
    try {
      ({ proof } = await this.#ask("bridge.hello", { nonce }, openWithin));
    } catch {
      if (isCurrent()) this.#drop(4401);
      return;
    }
    if (!isCurrent()) return;
    if (proof !== expected) return this.#refuse("PERMISSION_DENIED", "the host's proof is wrong");
    this.#proven = true;
    this.#attempts = 0;
    // Whoever hears an event may end the connection: then nothing is held any more.
    while (this.#held.length > 0) this.#event(this.#held.shift());
  }

  #receive(received) {
    if (typeof received !== "string" || received.length > limits.message) return this.#drop(4400);
    let message;
    try {
      message = JSON.parse(received);
    } catch {
      return this.#drop(4400);
    }
    if (isObject(message) && Number.isInteger(message.v) && message.v !== protocolVersion) {
      return this.#refuse("VERSION_MISMATCH", "another version");
    }
    if (!conforms(message, envelope)) return this.#drop(4400);
    if (message.type === "response") return this.#response(message);
    if (message.type !== "event") return;
    if (this.#proven) this.#event(message);
    else if (this.#held.push(message) > limits.held) this.#drop(4400);
  }

  #response({ correlationId, payload, status, error }) {
    const request = this.#pending.get(correlationId);
    if (!request) return; // too late, or a second time
    const failure = (code, message, recoverable) =>
      request.reject(new BridgeError(code, message, { recoverable, correlationId }));
    if (payload.action !== request.action || (status === "success" ? error : !error)) {
      return failure("INTERNAL_ERROR", "the answer fits no request", false);
    }
    if (status !== "success") return failure(error.code, error.message, error.recoverable);
    const data = payload.data ?? {};
    const shape = answers[request.action];
    if (shape && !conforms(data, shape)) return failure("INTERNAL_ERROR", "the answer has another form", false);
    request.resolve(data);
  }

  #event({ payload: { action, data = {} } }) {
    // A gap means that something was missed: a new connection brings the whole state.
    if (!Number.isSafeInteger(data.sequence) || data.sequence !== this.#sequence + 1) return this.#drop(4400);
    this.#sequence = data.sequence;
    const socket = this.#socket;
    if (Object.hasOwn(events, action) && !conforms(data, events[action])) return this.#drop(4400);
    // Whoever hears it may end the connection.
    const tell = (name, detail) => {
      if (this.#socket === socket) this.#dispatch(name, detail);
      return this.#socket === socket;
    };
    tell(action, data);
    if (action === "host.ready" && tell("open", data.snapshot)) this.#settleWaiting();
    tell("told", { sequence: data.sequence });
  }

  #dispatch(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }

  #refuse(code, message) {
    this.#wanted = null;
    const error = new BridgeError(code, message);
    this.#settleWaiting(error);
    this.#drop(4403);
    // Whoever heard that it is lost may have connected.
    if (!this.#wanted) this.#dispatch("refused", error);
  }

  #drop(code) {
    const socket = this.#socket;
    if (!socket) return;
    socket.close(code);
    this.#lost(code);
  }

  #lost(code) {
    const wasOpen = this.#proven;
    [this.#socket, this.#proven, this.#sequence, this.#held] = [null, false, 0, []];
    for (const [correlationId, request] of this.#pending) {
      const message = "the connection was lost before the answer";
      request.reject(new BridgeError("DISCONNECTED", message, { recoverable: true, correlationId }));
    }
    if (this.#wanted) this.#again();
    // Whoever hears it may close and connect.
    if (wasOpen) this.#dispatch("lost", { code });
  }

  #again() {
    const pause = Math.min(backOff.last, backOff.first * 2 ** this.#attempts);
    this.#attempts += 1;
    this.#timer = setTimeout(() => this.#open(), pause);
  }
}

/** A token for another connection of this page, where there is one, and whether another page is connected. */
async function freshToken() {
  try {
    const answer = await fetch("/token", {
      headers: { "X-Kiosk-Bridge": "1" },
      cache: "no-store",
      signal: AbortSignal.timeout(openWithin),
    });
    const { token, occupied } = answer.ok ? await answer.json() : {};
    return { token: tokenForm.test(token) ? token : null, occupied };
  } catch {
    return {};
  }
}
