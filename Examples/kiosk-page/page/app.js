// What happens when.

import { KioskBridge } from "/kiosk-bridge.js";
import { element, imageAddress } from "./dom.js";
import { IdleWatch } from "./idle.js";
import { play } from "./sound.js";
import { languages, pattern, pseudo, text, writing } from "./strings.js";
import { cancellable, missing, verdictOf, views } from "./views.js";

const parameters = new URLSearchParams(location.search);
const seconds = (name, otherwise) => {
  const value = Number(parameters.get(name));
  return value > 0 && value <= 600 ? value : otherwise;
};
const place = (id) => document.getElementById(id);

const bridge = new KioskBridge();
const emptyForm = () => ({ method: "fields", fields: { number: "", birth: "", expiry: "", mrz: "", can: "" }, wrong: {} });
const state = {
  view: "connecting",
  locale: firstLocale(),
  localeChosen: false,
  large: false,
  silent: false,
  volume: 60,
  low: false,
  headphones: false,
  isLost: false,
  inService: true,
  inBackground: false,
  capabilities: {},
  order: null,
  payment: null,
  journey: null,
  form: emptyForm(),
  progress: { step: "present", fraction: 0 },
  answer: null,
  portrait: null,
  picture: null,
  quality: null,
  passes: [],
  reference: "",
  error: null,
  checkout: null,
};
let operation = null; // the request that the customer waits for
let begun = false; // whether there is a journey that the host was told of

function firstLocale() {
  const asked = parameters.get("locale") ?? navigator.language.slice(0, 2);
  return asked === pseudo || Object.hasOwn(languages, asked) ? asked : "en";
}

const say = (key, values) => text(key, state.locale, values);

/** A text whose values keep their own direction. */
function phrase(key, values = {}) {
  return pattern(key, state.locale).split(/\{(\w+)\}/).map((part, index) =>
    index % 2 === 0 ? part : element("bdi", {}, String(values[part] ?? "")));
}

// Showing.

// What is heard when a view appears, or a state of it.
const sounds = {
  error: "failure", warning: "attention", payLost: "failure", "tap.removeCard": "attention", "tap.tryAgain": "failure",
  "tap.otherCard": "failure", "tap.seePhone": "attention", "paid.approved": "success", "paid.declined": "failure",
  "paid.unknown": "failure", "paid.cancelled": "attention", "result.yes": "success", "result.no": "failure",
  "result.unknown": "attention",
};

/** The state within the view. */
function detail() {
  const { view, payment, progress, answer, checkout } = state;
  if (view === "checkout") return checkout.step;
  if (view === "tap" || view === "paid") return payment.state;
  if (view === "hold") return progress.step;
  return view === "result" ? verdictOf(answer.security) : "";
}

let lastSaid = [];

/** Says texts to screen readers and headphones; failures at once. */
function announce(texts, sound) {
  lastSaid = texts;
  const urgent = sound === "failure";
  place(urgent ? "status" : "alert").textContent = "";
  place(urgent ? "alert" : "status").textContent = texts.map(({ key, values, text }) => text ?? say(key, values)).join(" ");
  if (sound) play(sound);
  speak();
}

let saying = null;

/** Says one text after the other, until another announcement begins. */
async function speak() {
  const mine = (saying = {});
  if (!state.headphones || state.silent) return;
  const locale = state.locale === pseudo ? "en" : state.locale;
  try {
    for (const { key, values } of lastSaid) {
      if (key && saying === mine) await bridge.request("speech.say", { key, values: { ...values, locale }, volume: state.volume });
    }
  } catch {
    // Nor is the rest.
  }
}

let shown = ""; // view and detail

function show(view, changes = {}) {
  Object.assign(state, { view }, changes);
  const texts = render();
  const now = `${view}.${detail()}`;
  if (now === shown) return;
  shown = now;
  scrollTo(0, 0);
  place("heading").focus({ preventScroll: true });
  announce(texts, sounds[now] ?? sounds[view]);
}

function render() {
  const { lang, dir } = writing(state.locale);
  const root = document.documentElement;
  Object.assign(root, { lang, dir });
  root.classList.toggle("large", state.large);
  root.classList.toggle("low", state.low);
  document.title = say("page.title");
  const focused = document.activeElement;
  const [id, action] = [focused?.id, focused?.dataset?.action];
  const app = { state, lang, say, phrase, act, told: [] };
  place("main").dataset.view = state.view;
  place("main").dataset.state = detail();
  // A view that changes its own elements returns none.
  const made = views[state.view](app);
  if (made) place("main").replaceChildren(...made.filter(Boolean));
  place("tools").replaceChildren(...tools());
  place("banner").hidden = !state.isLost;
  place("banner").textContent = state.isLost ? say("link.lost") : "";
  // The same control keeps the focus, if it is there.
  if (id || action) (id ? place(id) : document.querySelector(`[data-action="${action}"]`))?.focus({ preventScroll: true });
  return app.told;
}

function tools() {
  const tool = (key, { pressed, lang, label = say(key), act: onclick }) =>
    element("button", { type: "button", class: "tool", "data-action": key, "aria-pressed": pressed, lang, onclick }, label);
  const names = state.locale === pseudo ? { ...languages, [pseudo]: "Pseudo" } : languages;
  const switches = Object.entries(names).map(([locale, label]) =>
    tool(`language.${locale}`, {
      label, lang: writing(locale).lang, pressed: String(state.locale === locale), act: () => changeLanguage(locale),
    }));
  return [
    element("div", { role: "group", class: "tool-group", "aria-label": say("tools.language") }, switches),
    element("div", { role: "group", class: "tool-group", "aria-label": say("tools.label") },
      tool("tools.large", { pressed: String(state.large), act: () => toggle("large") }),
      tool("tools.low", { pressed: String(state.low), act: () => toggle("low") }),
      state.headphones && [
        tool("tools.again", { act: () => hush(false) }),
        tool("tools.pause", { pressed: String(state.silent), act: () => hush(!state.silent) }),
        tool("tools.quieter", { act: () => setVolume(-20) }),
        tool("tools.louder", { act: () => setVolume(20) }),
      ]),
  ];
}

function hush(silent) {
  Object.assign(state, { silent });
  render();
  if (silent) bridge.request("speech.stop").catch(() => {});
  speak();
}

/** Sets the volume in percent; what is said once more shows it. */
function setVolume(change) {
  state.volume = Math.min(100, Math.max(20, state.volume + change));
  hush(false);
}

function changeLanguage(locale) {
  Object.assign(state, { locale, localeChosen: true });
  render();
  speak();
}

function toggle(mode) {
  state[mode] = !state[mode];
  render();
}

// Secrets and images go with the view that shows them.

function forget(...names) {
  for (const name of names) {
    if (name === "form") state.form = emptyForm();
    else {
      if (name === "portrait" || name === "picture") URL.revokeObjectURL(state[name] ?? "");
      state[name] = null;
    }
  }
}

// Journeys.

/** Makes a request that the customer waits for, in place of the one before. */
async function operate(action, data, done, failed = fail) {
  const mine = { action };
  operation = mine;
  const settle = (handler, value) => {
    if (operation !== mine) return;
    operation = null;
    handler(value);
  };
  try {
    const answer = await bridge.request(action, data);
    settle(done, answer);
  } catch (error) {
    settle(failed, error);
  }
}

function fail(error) {
  bridge.send("journey.error", { message: error.code });
  show("error", { error });
}

function start() {
  if (!begun) bridge.send("journey.started");
  begun = true;
  const first = { payment: getOrder, passport: openPassport, photo: () => show("photo"), passes: readPasses, checkout: openCheckout };
  first[state.journey]();
}

// Journeys whose modules are fetched when somebody chooses them.

let fetching; // the last of them

let documentKey;
function openPassport() {
  fetching = import("./passport.js").then((module) => {
    documentKey = module.documentKey;
    show("key");
  }, fail);
}

/** Opens the checkout; or shows the one that is `known`. */
function openCheckout(known) {
  state.journey = "checkout";
  begun = true;
  fetching = import("./checkout.js").then(({ open }) => open(kiosk, known), fail);
}

function end(status, reference) {
  if (!begun) return;
  begun = false;
  bridge.send("journey.complete", { status, referenceId: reference });
}

function abandon(reason) {
  if (operation) {
    const stop = operation.action === "payment.start" ? "payment.cancel" : "nfc.cancel";
    bridge.request(stop).catch(() => {});
    operation = null;
  }
  if (begun) bridge.send("journey.cancel", { reason });
  begun = false;
}

function goHome() {
  forget("form", "answer", "portrait", "picture", "quality", "error", "payment", "order", "checkout");
  Object.assign(state, { journey: null, passes: [], reference: "" });
  show(state.inService ? "launcher" : "outOfService");
}

const newReference = () => crypto.randomUUID().slice(0, 8).toUpperCase();

function getOrder() {
  operate("order.get", { locale: state.locale }, ({ order }) => show(order ? "order" : "orderNone", { order }));
}

function pay() {
  const { id } = state.order;
  show("tap", { payment: { order: id, state: "idle" } });
  operate("payment.start", { order: id }, (answer) => paid(answer.outcome, answer), (error) => {
    if (error.code === "CANCELLED") return paid("cancelled");
    // It may have been paid.
    if (error.code === "DISCONNECTED" || error.code === "TIMEOUT") return show("payLost");
    fail(error);
  });
}

function paid(outcome, answer) {
  const { order } = state.payment;
  if (state.view === "paid" && state.payment.outcome === outcome) {
    state.payment.answer = answer;
    return render();
  }
  show("paid", { payment: { order, state: outcome, outcome, answer } });
  end(outcome === "approved" ? "success" : outcome, order);
}

const outcomes = new Set(["approved", "declined", "cancelled", "unknown"]);

function paymentState(order, next) {
  if (!state.payment || state.payment.order !== order) return;
  if (outcomes.has(next)) return paid(next);
  if (next === "outOfService") state.inService = false;
  else show("tap", { payment: { ...state.payment, state: next } });
}

function readChip() {
  const { method, fields } = state.form;
  const { key, wrong } = documentKey(method, fields);
  if (wrong) {
    state.form.wrong = wrong;
    render();
    document.querySelector('[aria-invalid="true"]')?.focus();
    return announce([{ key: "key.wrong" }], "failure");
  }
  state.form.wrong = {};
  show("hold", { progress: { step: "present", fraction: 0 } });
  operate("nfc.read", { type: "document", ...key, dataGroups: [1, 2] }, (answer) => {
    forget("form", "picture");
    const portrait = answer.portrait ? imageAddress(answer.portrait) : null;
    delete answer.portrait;
    const reference = newReference();
    show("result", { answer, portrait, reference });
    end(verdictOf(answer.security) === "no" ? "rejected" : "success", reference);
  });
}

function capture() {
  forget("picture");
  show("photoWait");
  operate("camera.document.capture", { documentType: "passport", side: "front" }, (answer) => {
    show("photoShown", { picture: imageAddress(answer), quality: answer.quality });
  });
}

function readPasses() {
  show("passesHold");
  operate("pass.read", {}, ({ passes }) => {
    show("passes", { passes, reference: newReference() });
  });
}

/** The page as it was before the customer came. */
function reset(reason) {
  abandon(reason);
  goHome();
  bridge.close();
  location.reload();
}

const act = {
  choose(journey) {
    state.journey = journey;
    if (missing(journey, state.capabilities).length > 0) show("warning");
    else start();
  },
  begin: start,
  home() {
    abandon("customer");
    goHome();
  },
  cancel() {
    if (state.view !== "tap") return act.home();
    bridge.request("payment.cancel").then(({ cancelled }) => {
      if (!cancelled) announce([{ key: "pay.tooLate" }]);
    }, () => {});
  },
  method(method) {
    Object.assign(state.form, { method, wrong: {} });
    render();
  },
  submit(event) {
    event.preventDefault();
    readChip();
  },
  photo: () => show("photo"),
  capture,
  usePhoto() {
    if (state.journey === "passport") return show("key");
    forget("picture");
    const reference = newReference();
    end("success", reference);
    show("complete", { reference });
  },
  leavePhoto() {
    forget("picture");
    if (state.journey === "passport") show("key");
    else act.home();
  },
  pay,
  retry() {
    state.error = null;
    if (state.journey === "passport" && state.view === "error") return show("key");
    start();
  },
  receipt() {
    bridge.request("receipt.print", { order: state.payment.order, locale: state.locale }).then(
      () => receipt("receipt.printed"), () => receipt("receipt.failed"));
  },
  finish() {
    const reference = state.payment?.order ?? state.reference;
    end("success", reference);
    forget("answer", "portrait", "payment", "order");
    show("complete", { reference, passes: [] });
  },
  checkout: () => act.choose("checkout"),
  reset: () => reset("customer"),
};

// What the checkout's module needs.
const kiosk = { bridge, state, sounds, say, show, render, announce, operate, fail, end, act };

function receipt(key) {
  if (state.view !== "paid") return;
  state.payment.receipt = key;
  render();
  announce([{ key }], key === "receipt.failed" ? "failure" : undefined);
}

// The host's events.

// Views without anything of a customer.
const quiet = new Set(["connecting", "occupied", "launcher", "outOfService", "warning", "complete", "orderNone"]);

function settleService() {
  if (!state.inService || state.inBackground) {
    if (quiet.has(state.view)) show(state.inService ? "connecting" : "outOfService");
  } else if (["outOfService", "connecting", "occupied"].includes(state.view)) goHome();
}

bridge.on("open", ({ inService, background = false, capabilities, payment, order, checkout }) => {
  Object.assign(state, { isLost: false, inService, inBackground: background, capabilities });
  const mine = state.payment?.order;
  if (payment && (state.view === "payLost" ? payment.order === mine : quiet.has(state.view) && payment.state !== "idle")) {
    state.order ??= order;
    state.payment = { order: payment.order, state: payment.state };
    state.journey = "payment";
    begun = true;
    const outcome = payment.outcome ?? payment.state;
    if (outcomes.has(outcome)) return paid(outcome);
    return show("tap", { payment: state.payment });
  }
  // The host no longer knows of it, and nobody else does.
  if (state.view === "payLost") return paid("unknown");
  if (checkout && quiet.has(state.view)) return openCheckout(checkout);
  render();
  settleService();
  // Once: who comes back is at the start.
  if (state.view === "launcher" && parameters.has("checkout")) {
    parameters.delete("checkout");
    history.replaceState(null, "", `?${parameters}`);
    act.checkout();
  }
});
// The number of the host's last event that is drawn, for what drives this page.
bridge.on("told", async ({ sequence }) => {
  await fetching;
  document.body.dataset.drawn = sequence;
});
bridge.on("lost", () => {
  document.body.dataset.drawn = 0;
  state.isLost = true;
  // A tap without a request of this connection.
  if (state.view === "tap" && !operation) return show("payLost");
  render();
});
bridge.on("occupied", () => state.view === "connecting" && show("occupied"));
bridge.on("refused", () => show("refused"));
bridge.on("host.capabilitiesChanged", ({ capabilities }) => {
  state.capabilities = capabilities;
  if (state.view === "launcher" || state.view === "warning") render();
});
bridge.on("host.outOfService", ({ inService }) => {
  state.inService = inService;
  settleService();
});
bridge.on("host.background", () => {
  state.inBackground = true;
  settleService();
});
bridge.on("host.foreground", () => {
  state.inBackground = false;
  settleService();
});
bridge.on("host.locale", ({ locale }) => {
  const language = locale.slice(0, 2);
  if (state.localeChosen || state.locale === pseudo || !Object.hasOwn(languages, language)) return;
  state.locale = language;
  render();
});
bridge.on("host.headphones", ({ connected }) => {
  const now = connected && !state.headphones;
  state.headphones = connected;
  render();
  if (now) speak();
});
bridge.on("journey.cancel", () => {
  operation = null;
  begun = false;
  goHome();
});
bridge.on("nfc.progress", ({ step, fraction }) => {
  if (state.view !== "hold") return;
  if (step !== state.progress.step) return show("hold", { progress: { step, fraction } });
  state.progress.fraction = fraction;
  document.querySelector("progress").value = fraction;
});
bridge.on("payment.state", ({ order, state: next }) => paymentState(order, next));

// Idle customers.

const isHeld = () => {
  if (state.view === "tap") return !cancellable.has(state.payment.state);
  if (state.view === "hold") return state.progress.step !== "present";
  if (state.view === "checkout") return state.checkout.isHeld;
  const untouched = state.view === "launcher" && !state.large && !state.low && !state.localeChosen;
  return untouched || ["connecting", "noHost", "refused", "outOfService", "photoWait", "payLost"].includes(state.view);
};
const dialog = place("idle");
const watch = new IdleWatch({
  limit: seconds("idle", 60),
  warning: seconds("warning", 20),
  isHeld,
  warn(left) {
    if (dialog.open) {
      dialog.querySelector("p").replaceChildren(...phrase("idle.lead", { seconds: left }));
      return;
    }
    dialog.lang = document.documentElement.lang;
    dialog.replaceChildren(
      element("h2", { id: "idle-title" }, say("idle.title")),
      element("p", { id: "idle-lead" }, phrase("idle.lead", { seconds: left })),
      element("button", { type: "button", class: "button primary", "data-action": "idle.extend" }, say("idle.extend")));
    dialog.showModal();
    announce([{ key: "idle.title" }, { key: "idle.lead", values: { seconds: String(left) } }], "attention");
  },
  calm: () => dialog.close(),
  expire: () => reset("idle"),
});
// Beside the question, too.
for (const name of ["cancel", "click"]) dialog.addEventListener(name, () => watch.touch());

let lastActivity = -Infinity;
function active() {
  if (dialog.open) return; // what closes it must reach its own target first
  watch.touch();
  if (performance.now() - lastActivity < 5_000) return;
  lastActivity = performance.now();
  bridge.send("journey.activity");
}
for (const name of ["pointerdown", "keydown", "input"]) addEventListener(name, active, { capture: true });

// A tactile keypad: arrows move, OK is Enter, back is Escape.
addEventListener("keydown", (event) => {
  if (dialog.open || event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key === "Escape") return document.querySelector("[data-back]")?.click();
  const forward = { ArrowDown: 1, ArrowUp: -1, ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!forward) return;
  const sideways = event.key === "ArrowRight" || event.key === "ArrowLeft";
  const target = event.target;
  if (target instanceof HTMLTextAreaElement || (target instanceof HTMLInputElement && (sideways || target.type === "radio"))) return;
  const step = sideways && document.documentElement.dir === "rtl" ? -forward : forward;
  const all = [...document.querySelectorAll("main :is(button, input, textarea, summary), footer button")].filter(
    (one) => one.tabIndex >= 0);
  const next = all[all.indexOf(document.activeElement) + step] ?? (step > 0 ? all[0] : all.at(-1));
  event.preventDefault();
  next?.focus();
});

if (bridge.isEmbedded) {
  render();
  bridge.connect();
} else {
  show("noHost");
}
