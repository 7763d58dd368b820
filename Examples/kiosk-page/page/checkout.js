// The checkout: what the service tells of it becomes visible here.  Each text is the service's, and so is what comes next.
//
// A state changes the elements that are there: focus, cursor and typed text stay.  What was typed is only in its field,
// and a secret is never written into one: the service tells it masked, and the mask stands below.

import style from "./checkout.css" with { type: "css" };
import { drawing, element, icon } from "./dom.js";
import { keypad } from "./keypad.js";
import { button, content, isReady, sign, views } from "./views.js";

document.adoptedStyleSheets.push(style);

let app; // what app.js lends
let told = null; // the service's state
let locale = null; // the language that the service was told

/** Opens a checkout; or shows the one that is `known`. */
export function open(kiosk, known) {
  if (!app) attach(kiosk);
  if (known && known.route !== "start") return take(known);
  if (known) return app.act.home();
  told = null;
  locale = pageLocale();
  app.show("connecting");
  app.operate("checkout.start", { locale }, () => {});
}

function attach(kiosk) {
  app = kiosk;
  views.checkout = draw;
  Object.assign(app.sounds, {
    "checkout.success": "success", "checkout.failure": "failure", "checkout.unknown": "failure",
    "checkout.tap.removeCard": "attention", "checkout.tap.tryAgain": "failure", "checkout.tap.otherCard": "failure",
    "checkout.tap.seePhone": "attention", "checkout.challenge": "attention",
  });
  app.bridge.on("checkout.state", (next) => {
    const { view, journey } = app.state;
    if (journey !== "checkout" || !["connecting", "checkout"].includes(view)) return;
    if (next.route !== "start") take(next);
    else if (view === "checkout") home();
  });
  app.bridge.on("open", ({ checkout }) => app.state.view === "checkout" && resume(checkout));
  app.bridge.on("journey.cancel", () => told && send("checkout.cancel"));
}

function home() {
  told = null;
  app.act.home();
}

const pageLocale = () => document.documentElement.lang.replace("ar-XB", "en");
const isPaying = ({ route, tap }) =>
  route === "processing" || route === "challenge" || ["reading", "removeCard", "processing"].includes(tap?.state);

function take(next) {
  const { route, method, tap, selection } = next;
  const step = {
    methodSelection: `selection.${selection?.status}`, method: tap ? `tap.${tap.state}` : method?.id,
    failure: next.hint ? "failure" : "unknown",
  }[route] ?? route;
  if (step !== app.state.checkout?.step) wipe();
  const before = told;
  told = next;
  if (route === "success" && app.state.reference !== next.order) {
    app.state.reference = next.order;
    app.end("success", next.order);
  }
  app.show("checkout", { checkout: { step, isHeld: isPaying(next) } });
  mention(before);
}

/** After the link was lost: what the service has of it, and never a guess. */
function resume(known) {
  if (told.route === "success") return;
  if (known && !["start", "methodSelection", "method"].includes(known.route)) return take(known);
  const order = told.order;
  if (isPaying(told)) return app.show("paid", { payment: { order, state: "unknown", outcome: "unknown" } });
  app.show("error", { error: { code: "DISCONNECTED", recoverable: true } });
}

/** What was typed goes with its view. */
function wipe() {
  notice = null;
  marksErrors = false;
  for (const field of document.querySelectorAll("main input")) field.value = "";
}

// What the customer does.  One request after the other, and of a field's texts only the last.

const queue = [];
let isSending = false;

async function send(action, data = {}) {
  const last = queue.at(-1);
  if (last?.action === action && (action === "checkout.search" || last.data.field === data.field)) last.data = data;
  else queue.push({ action, data });
  if (isSending) return;
  isSending = true;
  for (let next; (next = queue.shift());) {
    try {
      await app.bridge.request(next.action, next.data);
    } catch (error) {
      refused(next.action, error);
    }
  }
  isSending = false;
}

let notice = null; // the key of a text of the page, below the state

function notify(key, sound) {
  notice = key;
  app.render();
  app.announce([{ key }], sound);
}

function refused(action, { code }) {
  if (app.state.view !== "checkout") return;
  if (action === "checkout.submit" && code === "BUSY" && told.route === "method") notify("error.BUSY", "failure");
  // It is over already.
  if (action === "checkout.cancel" && code === "INVALID_REQUEST") home();
}

let marksErrors = false; // whether the first field with an error is to have the focus

function submit(event) {
  event.preventDefault();
  const parts = flat(told.form.elements);
  if (parts.some(({ isLoading }) => isLoading)) return;
  // What is missing is said at its field, rather than by a button that does nothing.
  if (!parts.some(({ isEnabled }) => isEnabled)) {
    marksErrors = true;
    for (const { field } of parts) if (field) send("checkout.leave", { field });
  }
  send("checkout.submit");
}

function print() {
  app.bridge.request("receipt.print", { order: told.order, locale: pageLocale() }).then(
    () => notify("receipt.printed"), () => notify("receipt.failed", "failure"));
}

// What is said besides a new view: errors of fields, and methods that come and go.

const flat = (elements) => elements.flatMap((one) => [one, ...flat(one.elements ?? [])]);
const errors = (state) => flat(state?.form?.elements ?? []).filter(({ error }) => error);

function mention(before) {
  const known = errors(before).map(({ field }) => field);
  const texts = errors(told).filter(({ field }) => !known.includes(field)).map(({ error, errorKey }) => ({ text: error, key: errorKey }));
  const count = told.selection?.count;
  if (before?.selection?.count && count && count !== before.selection.count) texts.push({ text: count });
  const wrong = marksErrors && document.querySelector("main [aria-invalid]");
  if (wrong) {
    marksErrors = false;
    wrong.focus();
  }
  if (texts.length > 0) app.announce(texts);
}

// Parts of views.

function heading({ told: said }, text) {
  said.push({ text });
  return element("h1", { tabindex: -1, id: "heading" }, text);
}
const lead = ({ told: said }, text) => {
  if (!text) return null;
  said.push({ text });
  return element("p", { class: "lead" }, text);
};
const sums = ({ told: said }) => {
  said.push(...told.sums.map((text) => ({ text })));
  return element("div", { class: "sums" }, told.sums.map((text) => element("p", {}, element("bdi", {}, text))));
};
const comment = ({ say }) => notice && element("p", { class: "comment attention" }, say(notice));
const loyalty = ({ phrase }) =>
  told.loyalty && element("p", { class: "loyalty" }, icon("star"),
    element("span", {}, phrase("pay.loyalty", { member: told.loyalty.member, saved: told.loyalty.saved.text })));

const choices = (more = [], kind = "secondary") =>
  more.length + told.actions.length > 0 && element("div", { class: "actions" }, more, told.actions.map(({ action, label }, index) =>
    element("button", {
      type: "button", class: `button ${index === 0 ? kind : "secondary"}`, id: `${action}-${index}`, "data-action": action,
      "data-back": action !== "checkout.retry", onclick: () => send(action),
    }, element("span", {}, label))));

// Views.

const kinds = { tap: "phone", voucher: "star" };

const method = ({ id, kind, name, text, networks }) =>
  element("li", { "data-key": id },
    element("button", {
      type: "button", class: "journey", "data-action": `method.${id}`, onclick: () => send("checkout.select", { method: id }),
    },
    icon(kinds[kind] ?? "card"),
    element("span", { class: "journey-text" },
      element("strong", {}, name), " ", text ? element("span", {}, text) : null,
      networks.length > 0 ? element("span", {}, networks.map((one) => one.name).join(", ")) : null)));

function methodSelection(view) {
  const { status, text, count, search, methods = [] } = told.selection;
  return [
    content(
      status === "ready" ? null : sign(status === "error" ? "warning" : "clock", status === "error" ? "bad" : "calm"),
      heading(view, text), status === "ready" ? lead(view, count) : null, loyalty(view), sums(view),
      search
        ? element("div", { class: "field" },
          element("label", { for: "checkout-search" }, search),
          element("input", {
            id: "checkout-search", class: "entry", type: "search", autocomplete: "off", spellcheck: "false", maxlength: 64,
            oninput: ({ target }) => send("checkout.search", { query: target.value }),
          }))
        : null,
      methods.length > 0 ? element("ul", { class: "journeys", role: "list" }, methods.map(method)) : null),
    choices([], status === "error" ? "primary" : "secondary"),
  ];
}

const scenes = {
  presentCard: ["phone"], seePhone: ["phone", "calm"], tryAgain: ["warning", "attention"], otherCard: ["warning", "attention"],
  removeCard: ["tick", "calm"], approved: ["tick", "good"], declined: ["cross", "bad"], cancelled: ["pause", "calm"],
  unknown: ["question", "attention"], outOfService: ["pause", "attention"],
};

function tap(view) {
  const { state, text } = told.tap;
  const [picture, tone] = scenes[state] ?? ["clock", "calm"];
  return [
    content(
      tone ? sign(picture, tone) : element("div", { class: "scene scene-card", "aria-hidden": "true" }, icon(picture)),
      heading(view, text), loyalty(view), sums(view), comment(view)),
    choices(),
  ];
}

const keyLayouts = { numeric: "digits", tel: "phone" };
const keysPlace = "checkout-keys";

/** Shows keys for a field of the form; for the same one as before where none is named. */
function showKeys(name) {
  const place = document.getElementById(keysPlace);
  const fields = flat(told.form.elements).filter(({ kind }) => kind === "field");
  const part = fields.find(({ field }) => field === (name ?? place.dataset.field)) ?? fields[0];
  const shown = [pageLocale(), part.label].join();
  if (place.dataset.field === part.field && place.dataset.shown === shown) return;
  Object.assign(place.dataset, { field: part.field, shown });
  const input = document.getElementById(`checkout-${part.field}`);
  place.replaceChildren(keypad(input, keyLayouts[part.inputMode] ?? "text", part.label, app.say));
}

const elements = {
  group: (part) =>
    element("fieldset", { class: "group" }, element("legend", {}, part.title), part.elements.map(walk)),

  field({ field, label, placeholder, isRequired, value, error, maximumLength, autocomplete, inputMode, isSecret }) {
    const id = `checkout-${field}`;
    // A mask with digits; stars alone say no more than the field itself.
    const mask = isSecret && /\d/.test(value);
    const network = autocomplete === "cc-number" && told.form.network;
    const input = element("input", {
      id, name: autocomplete, class: isSecret ? "entry secret" : "entry", dir: inputMode === "text" ? "auto" : "ltr", placeholder,
      maxlength: maximumLength, autocomplete, inputmode: inputMode, spellcheck: "false", autocapitalize: "off",
      "aria-required": isRequired ? "true" : undefined, "aria-invalid": error ? "true" : undefined,
      "aria-describedby": [network && `${id}-network`, mask && `${id}-mask`, error && `${id}-wrong`].filter(Boolean).join(" ") || undefined,
      oninput: ({ target }) => send("checkout.update", { field, value: target.value }),
      onfocus: () => showKeys(field),
      onblur: ({ relatedTarget }) => relatedTarget?.closest(".keypad") || send("checkout.leave", { field }),
    });
    // Of a field that is there already, the customer's own text stays.
    if (!isSecret) input.value = value;
    return element("div", { class: "field", "data-key": field },
      element("label", { for: id }, label), input,
      network ? element("p", { class: "network", id: `${id}-network` }, icon("card"), network.name) : null,
      mask ? element("p", { class: "hint", id: `${id}-mask` }, element("bdi", {}, value)) : null,
      error ? element("p", { class: "wrong", id: `${id}-wrong` }, icon("warning"), error) : null);
  },

  networks: ({ label, networks, chosen }) =>
    element("fieldset", { class: "choices", "data-key": "networks" },
      element("legend", {}, label),
      networks.map(({ id, name }) =>
        element("label", { class: "choice", "data-key": id },
          element("input", {
            type: "radio", name: "network", id: `network-${id}`, checked: chosen === id,
            onchange: () => send("checkout.chooseNetwork", { network: id }),
          }),
          element("span", {}, name)))),

  button: ({ label, isEnabled, isLoading }) =>
    element("button", {
      type: "submit", class: "button primary", "data-action": "checkout.submit",
      "aria-disabled": isEnabled && !isLoading ? undefined : "true",
    }, element("span", {}, label)),
};

const walk = (part) => elements[part.kind]?.(part) ?? null;

function form(view) {
  const { elements: parts } = told.form;
  return [
    element("form", { class: "content key-form", id: `checkout-form-${told.method.id}`, novalidate: true, onsubmit: submit },
      element("div", { class: "key-fields" },
        heading(view, told.method.name), loyalty(view), sums(view), comment(view),
        parts.filter(({ kind }) => kind !== "button").map(walk)),
      element("div", { class: "keypad-place", id: keysPlace }),
      choices(parts.filter(({ kind }) => kind === "button").map(walk))),
  ];
}

const plain = (picture, tone, ...more) => (view) => [
  content(picture && sign(picture, tone), heading(view, told.text), lead(view, told.hint), ...more.map((part) => part(view)), comment(view)),
  choices([], "primary"),
];

/** A QR code: a bar for each run of dark modules, and four light modules around them all (ISO/IEC 18004:2015, 6.3.8). */
function code({ label, modules }) {
  const bars = modules.flatMap((row, y) =>
    [...row.matchAll(/1+/g)].map(({ 0: { length }, index }) => `M${index} ${y}h${length}v1h-${length}z`));
  const size = modules.length + 8;
  return drawing({ viewBox: `-4 -4 ${size} ${size}`, role: "img", "aria-label": label, class: "code" }, [bars.join("")]);
}

/** Where the customer confirms the payment: on their phone; without a code in a window of its own, as this one waits. */
function challengePage() {
  const page = URL.parse(told.page);
  if (!/^https?:$/.test(page?.protocol)) return null;
  const host = element("bdi", {}, page.host);
  return [
    told.code && code(told.code),
    element("p", { class: "address" },
      told.code ? host : element("a", { href: page.href, target: "_blank", rel: "noopener noreferrer" }, host)),
  ];
}

const reference = ({ phrase }) => element("p", {}, phrase("reference", { reference: told.order }));
const card = () => told.card && element("p", { class: "reference" }, element("bdi", {}, told.card));

const routes = {
  methodSelection,
  method: (view) => (told.tap ? tap(view) : form(view)),
  processing: plain("clock", "calm", sums),
  challenge: (view) => plain(told.code ? null : "phone", "attention", challengePage, sums)(view),
  failure: (view) => (told.hint ? plain("cross", "bad") : plain("question", "attention", reference))(view),
  success: (view) => [
    content(sign("tick", "good"), heading(view, told.text), card(), loyalty(view), sums(view), comment(view)),
    element("div", { class: "actions" },
      told.receipt && isReady(view.state.capabilities["receipt.print"]) && notice !== "receipt.printed"
        ? button(view, "receipt.print", print, { picture: "print" }) : null,
      button(view, "action.finish", leave, { kind: "primary", back: true })),
  ],
};

function leave() {
  send("checkout.cancel");
  told = null;
  app.act.finish();
}

function draw(view) {
  if (pageLocale() !== locale) {
    locale = pageLocale();
    send("checkout.locale", { locale });
  }
  const { step } = view.state.checkout;
  const made = routes[told.route](view).filter(Boolean);
  for (const one of made) one.dataset.key = told.route === "method" && told.form ? "" : step;
  patch(document.getElementById("main"), made);
  // To headphones by their keys; screen readers have the texts.
  view.told.push(...told.said.map((one) => ({ ...one, text: "" })));
  if (told.form) showKeys();
}

// Elements that stay.

const name = (node) =>
  node.nodeType === Node.ELEMENT_NODE ? `${node.tagName} ${node.id || node.dataset.action || node.dataset.key || ""}` : "";

/** Makes the children of `parent` like those of `fresh`; who has the name of one that is there changes into it. */
function patch(parent, fresh) {
  const wanted = new Set(fresh.map(name));
  for (const node of [...parent.childNodes]) if (!wanted.has(name(node))) node.remove();
  let at = parent.firstChild;
  for (const node of fresh) {
    if (at && name(at) === name(node)) {
      change(at, node);
      at = at.nextSibling;
    } else {
      parent.insertBefore(node, at);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function change(node, fresh) {
  if (node.nodeType !== Node.ELEMENT_NODE) {
    if (node.data !== fresh.data) node.data = fresh.data;
    return;
  }
  // The keys are their field's.
  if (node.id === keysPlace) return;
  for (const { name: attribute } of [...node.attributes]) {
    if (!fresh.hasAttribute(attribute)) node.removeAttribute(attribute);
  }
  for (const { name: attribute, value } of fresh.attributes) {
    if (node.getAttribute(attribute) !== value) node.setAttribute(attribute, value);
  }
  if (node.type === "radio") node.checked = fresh.checked;
  patch(node, [...fresh.childNodes]);
}
