// The views: each makes the elements of a screen from the state.  They decide nothing.  Those of passport.js and checkout.js are
// fetched when somebody needs them.

import { element, icon } from "./dom.js";
import { keys } from "./strings.js";

/** The journeys: what each needs, and what it can use besides. */
export const journeys = {
  payment: { icon: "card", needs: ["payment.start"], uses: ["receipt.print"] },
  passport: { icon: "passport", needs: ["nfc.read"], uses: ["camera.document"] },
  photo: { icon: "camera", needs: ["camera.document"], uses: [] },
  passes: { icon: "phone", needs: ["pass.read"], uses: [] },
  // Shown only where the kiosk has one.
  checkout: { icon: "card", needs: ["checkout.start"], uses: [], isOptional: true },
};

/** The part of a journey that is missing at this kiosk. */
export const missing = (journey, capabilities) =>
  journeys[journey].needs.filter((id) => !isReady(capabilities[id]));

export const isReady = (capability) => capability?.supported === true && capability.permissionState !== "denied";

// Parts of views.

// What a view is about is told, too: `app.told` has the texts.
function told(app, key, values) {
  app.told.push({ key, values });
  return app.phrase(key, values);
}
export const heading = (app, key) => element("h1", { tabindex: -1, id: "heading" }, told(app, key));
export const lead = (app, key) => element("p", { class: "lead" }, told(app, key));
export const sign = (name, tone) => element("div", { class: `sign ${tone}` }, icon(name));
export const content = (...children) => element("div", { class: "content" }, ...children);

export function button(app, key, action, { kind = "secondary", back = false, values, picture } = {}) {
  return element(
    "button",
    { type: "button", class: `button ${kind}`, "data-action": key, "data-back": back, onclick: action },
    picture ? icon(picture) : null,
    element("span", {}, app.phrase(key, values)));
}

export const actions = (...buttons) => element("div", { class: "actions" }, buttons);
export const cancel = (app) => button(app, "action.cancel", app.act.cancel, { back: true });
export const finish = (app, kind = "primary") => button(app, "action.finish", app.act.finish, { kind, back: true });

function plain(app, { picture, tone = "calm", title, text, more = [], buttons = [] }) {
  return [
    content(sign(picture, tone), heading(app, title), text ? lead(app, text) : null, more),
    buttons.length > 0 ? actions(buttons) : null,
  ];
}

function amount(app) {
  const { total } = app.state.order ?? {};
  if (!total) return null;
  return element("p", { class: "amount" },
    element("span", { class: "amount-label" }, app.say("pay.amount")), element("bdi", {}, total.text));
}

/** What a customer is told of a document. */
export const verdictOf = ({ authentic, chipGenuine }) => (chipGenuine === "no" ? "no" : authentic);

// Launcher.

function badge(app, id) {
  const ready = isReady(app.state.capabilities[id]);
  return element("li", { class: `badge ${ready ? "ready" : "missing"}`, "data-capability": id },
    icon(ready ? "tick" : "cross"),
    element("span", {}, `${app.say(`capability.${id}`)}: ${app.say(ready ? "capability.ready" : "capability.missing")}`));
}

function launcher(app) {
  const card = ([name, journey]) =>
    element("li", {},
      element("button", { type: "button", class: "journey", "data-action": `journey.${name}`, onclick: () => app.act.choose(name) },
        icon(journey.icon),
        element("span", { class: "journey-text" },
          element("strong", {}, app.say(`journey.${name}.title`)), " ",
          element("span", {}, app.say(`journey.${name}.lead`)))));
  const { capabilities } = app.state;
  const offered = Object.entries(journeys).filter(([name, { isOptional }]) => !isOptional || !missing(name, capabilities).length);
  const ids = [...new Set(offered.flatMap(([, { needs, uses }]) => [...needs, ...uses]))];
  return [
    content(
      heading(app, "launcher.title"), lead(app, "launcher.lead"),
      element("ul", { class: "journeys", role: "list" }, offered.map(card)),
      element("section", { class: "devices", "aria-labelledby": "devices" },
        element("h2", { id: "devices" }, app.say("launcher.devices")),
        element("ul", { class: "badges", role: "list" }, ids.map((id) => badge(app, id))))),
  ];
}

function warning(app) {
  const names = missing(app.state.journey, app.state.capabilities).map((id) => app.say(`capability.${id}`));
  return [
    content(
      sign("warning", "attention"), heading(app, "warning.title"), lead(app, "warning.lead"),
      element("ul", { class: "missing-list" }, names.map((name) => element("li", {}, name))),
      element("p", {}, told(app, "warning.choice"))),
    actions(
      button(app, "warning.continue", app.act.begin), button(app, "action.cancel", app.act.home, { kind: "primary", back: true })),
  ];
}

// Camera.

export const picture = (app) =>
  element("img", { class: "picture", src: app.state.picture, alt: app.say("photo.picture") });

function photo(app) {
  return plain(app, {
    picture: "camera", title: "journey.photo.title", text: "photo.lead",
    buttons: [button(app, "photo.take", app.act.capture, { kind: "primary" }), button(app, "action.back", app.act.leavePhoto, { back: true })],
  });
}

const photoWait = (app) => plain(app, { picture: "camera", title: "photo.wait.title", text: "hold.lead" });

/** What a picture lacks most; the limits are those below which people could no longer read print. */
function lacking({ sharpness, glare, coverage }) {
  if (coverage < 0.6) return "photo.partly";
  if (glare > 0.25) return "photo.glare";
  return sharpness < 0.4 ? "photo.blurred" : "photo.good";
}

function photoShown(app) {
  const comment = lacking(app.state.quality);
  const good = comment === "photo.good";
  return [
    content(heading(app, "photo.shown.title"), picture(app),
      element("p", { class: `comment ${good ? "good" : "attention"}` }, icon(good ? "tick" : "warning"), app.say(comment))),
    actions(
      button(app, "photo.use", app.act.usePhoto, { kind: good ? "primary" : "secondary" }),
      button(app, "photo.again", app.act.capture, { kind: good ? "secondary" : "primary" }),
      button(app, "action.back", app.act.leavePhoto, { back: true })),
  ];
}

// Payment.

function order(app) {
  const { lines, total } = app.state.order;
  const title = heading(app, "order.title");
  told(app, "order.pay", { amount: total.text });
  const head = (name, type) => element("th", { scope: "col", class: type }, app.say(`order.${name}`));
  return [
    content(
      title,
      element("table", { class: "order" },
        element("thead", {}, element("tr", {}, head("item", "text"), head("quantity", "figure"), head("price", "figure"))),
        element("tbody", {}, lines.map((line) =>
          element("tr", {},
            element("td", {}, element("bdi", {}, line.title)),
            element("td", { class: "figure" }, `${line.quantity}`),
            element("td", { class: "figure" }, element("bdi", {}, line.total.text))))),
        element("tfoot", {}, element("tr", {},
          element("th", { scope: "row", colspan: 2 }, app.say("order.total")),
          element("td", { class: "figure" }, element("bdi", {}, total.text)))))),
    actions(
      button(app, "order.pay", app.act.pay, { kind: "primary", picture: "card", values: { amount: total.text } }), cancel(app)),
  ];
}

const orderNone = (app) =>
  plain(app, {
    picture: "question", title: "order.none.title", text: "order.none.lead",
    buttons: [button(app, "action.restart", app.act.home, { kind: "primary", back: true })],
  });

const taps = { reading: "clock", processing: "clock", idle: "clock", removeCard: "tick", seePhone: "phone", tryAgain: "warning", otherCard: "warning" };
/** The states in which the customer may still go back. */
export const cancellable = new Set(["presentCard", "seePhone", "tryAgain", "otherCard"]);

const waiting = new Set(["idle", "processing"]);

function tap(app) {
  const { state } = app.state.payment;
  return [
    content(
      state === "presentCard"
        ? element("div", { class: "scene scene-card", "aria-hidden": "true" }, icon("card"))
        : sign(taps[state] ?? "clock", ["tryAgain", "otherCard"].includes(state) ? "attention" : "calm"),
      heading(app, waiting.has(state) ? "connecting.title" : `pay.${state}.title`), lead(app, `pay.${state}.lead`), amount(app)),
    cancellable.has(state) ? actions(cancel(app)) : null,
  ];
}

function paid(app) {
  const { outcome, answer, receipt } = app.state.payment;
  const signs = { approved: ["tick", "good"], declined: ["cross", "bad"], cancelled: ["pause", "calm"], unknown: ["question", "attention"] };
  const loyalty = answer?.loyalty;
  const shown = answer?.amount?.text ?? app.state.order?.total.text;
  const printable = outcome === "approved" && (answer ? answer.receipt : isReady(app.state.capabilities["receipt.print"]));
  const again = outcome === "declined" || outcome === "cancelled";
  return [
    content(
      sign(...signs[outcome]), heading(app, `pay.${outcome}.title`),
      shown && outcome !== "cancelled"
        ? element("p", { class: "amount" }, element("span", { class: "amount-label" }, app.say("pay.amount")), element("bdi", {}, shown))
        : null,
      lead(app, `pay.${outcome}.lead`),
      loyalty
        ? element("p", { class: "loyalty" }, icon("star"),
          element("span", {}, app.phrase("pay.loyalty", { member: loyalty.member, saved: loyalty.saved.text })))
        : null,
      outcome === "unknown" ? element("p", {}, app.phrase("reference", { reference: app.state.payment.order })) : null,
      receipt ? element("p", { class: "comment" }, app.say(receipt)) : null),
    actions(
      again ? button(app, "action.retry", app.act.retry, { kind: "primary" }) : null,
      printable && receipt !== "receipt.printed" ? button(app, "receipt.print", app.act.receipt, { picture: "print" }) : null,
      finish(app, again ? "secondary" : "primary")),
  ];
}

const payLost = (app) =>
  plain(app, {
    picture: "question", tone: "attention", title: "pay.unknown.title", text: "pay.lost.lead",
    more: [amount(app), element("p", {}, app.phrase("reference", { reference: app.state.payment.order }))],
  });

// Loyalty cards.

const passesHold = (app) => [
  content(
    element("div", { class: "scene scene-card", "aria-hidden": "true" }, icon("phone")),
    heading(app, "passes.hold.title"), lead(app, "passes.hold.lead")),
  actions(cancel(app)),
];

function passes(app) {
  const list = app.state.passes;
  return [
    content(
      sign("star", "calm"), heading(app, "passes.title"),
      list.length === 0
        ? lead(app, "passes.none")
        : element("ul", { class: "passes", role: "list" }, list.map(({ merchant, member }) =>
          element("li", {}, element("bdi", {}, merchant), " ", member ? element("bdi", { class: "member" }, member) : null)))),
    actions(
      // At a member's price.
      missing("checkout", app.state.capabilities).length === 0 ? button(app, "journey.checkout.title", app.act.checkout) : null,
      finish(app)),
  ];
}

// Ends.

const complete = (app) =>
  plain(app, {
    picture: "tick", tone: "good", title: "complete.title", text: "complete.lead",
    more: [element("p", { class: "reference" }, app.phrase("reference", { reference: app.state.reference }))],
    buttons: [button(app, "action.restart", app.act.reset, { kind: "primary", back: true })],
  });

/** The text for an error; those of the service are not for customers. */
const errorText = (code) => (keys.includes(`error.${code}`) ? `error.${code}` : "error.other");

const error = (app) =>
  plain(app, {
    picture: "warning", tone: "bad", title: "error.title", text: errorText(app.state.error.code),
    buttons: [
      app.state.error.recoverable ? button(app, "action.retry", app.act.retry, { kind: "primary" }) : null,
      button(app, "action.restart", app.act.home, { kind: app.state.error.recoverable ? "secondary" : "primary", back: true }),
    ],
  });

const still = (picture, title, text) => (app) => plain(app, { picture, title, text });

export const views = {
  connecting: still("clock", "connecting.title", "connecting.lead"),
  occupied: still("pause", "unavailable.title", "occupied.lead"),
  noHost: still("pause", "unavailable.title", "unavailable.noHost"),
  refused: still("warning", "unavailable.title", "error.other"),
  outOfService: still("pause", "outOfService.title", "outOfService.lead"),
  launcher, warning, photo, photoWait, photoShown, order, orderNone, tap, paid, payLost, passesHold,
  passes, complete, error,
};
