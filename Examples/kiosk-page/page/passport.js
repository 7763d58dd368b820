// The views of a passport: what opens its chip, the reading, the result.

import { element, icon } from "./dom.js";
import { keypad } from "./keypad.js";
import { shownDate } from "./mrz.js";
import { actions, button, cancel, content, finish, heading, isReady, lead, picture, sign, verdictOf, views } from "./views.js";

const fields = {
  number: { hint: "key.number.hint", keys: "letters", length: 22 },
  birth: { hint: "key.date.hint", keys: "digits", length: 10 },
  expiry: { hint: "key.date.hint", keys: "digits", length: 10 },
  mrz: { hint: "key.mrz.hint", keys: "lines", length: 92, rows: 3 },
  can: { hint: "key.can.hint", keys: "digits", length: 6 },
};
const methods = { fields: ["number", "birth", "expiry"], mrz: ["mrz"], can: ["can"] };

function entry(app, name, focused) {
  const { hint, length, rows, keys } = fields[name];
  const { form } = app.state;
  const wrong = form.wrong[name];
  const input = element(rows ? "textarea" : "input", {
    id: `field-${name}`, class: `entry entry-${keys}`, dir: "ltr", rows, maxlength: length, autocomplete: "off",
    autocapitalize: "characters", spellcheck: "false", inputmode: keys === "digits" ? "numeric" : "text",
    "aria-describedby": wrong ? `hint-${name} wrong-${name}` : `hint-${name}`, "aria-invalid": wrong ? "true" : undefined,
    oninput: (event) => (form.fields[name] = event.target.value),
    onfocus: (event) => focused(event.target, keys, app.say(`key.${name}`)),
  });
  input.value = form.fields[name];
  return element("div", { class: "field" },
    element("label", { for: input.id }, app.say(`key.${name}`)),
    element("p", { class: "hint", id: `hint-${name}` }, app.say(hint)),
    input,
    wrong ? element("p", { class: "wrong", id: `wrong-${name}` }, icon("warning"), app.say(wrong)) : null);
}

function key(app) {
  const { form } = app.state;
  const place = element("div", { class: "keypad-place" });
  let shown = null;
  const focused = (input, keys, label) => {
    if (shown === input) return;
    shown = input;
    place.replaceChildren(keypad(input, keys, label, app.say));
  };
  const radio = (name) =>
    element("label", { class: "choice" },
      element("input", {
        type: "radio", name: "method", value: name, id: `method-${name}`, checked: form.method === name,
        onchange: () => app.act.method(name),
      }),
      element("span", {}, app.say(`key.method.${name}`)));
  const entries = methods[form.method].map((name) => entry(app, name, focused));
  const first = entries[0].querySelector("input, textarea");
  const firstName = methods[form.method][0];
  focused(first, fields[firstName].keys, app.say(`key.${firstName}`));
  const photo = isReady(app.state.capabilities["camera.document"])
    ? button(app, "key.photo", app.act.photo, { picture: "camera" }) : null;
  return [
    element("form", { class: "content key-form", novalidate: true, onsubmit: app.act.submit },
      element("div", { class: "key-fields" },
        heading(app, "key.title"), lead(app, "key.lead"),
        element("fieldset", { class: "choices" },
          element("legend", {}, app.say("key.method")), Object.keys(methods).map(radio)),
        app.state.picture ? picture(app) : null,
        entries),
      place,
      actions(
        element("button", { type: "submit", class: "button primary", "data-action": "key.submit" }, app.say("key.submit")),
        photo, cancel(app))),
  ];
}

function hold(app) {
  const { step, fraction } = app.state.progress;
  return [
    content(
      element("div", { class: `scene scene-document step-${step}`, "aria-hidden": "true" }, icon("passport")),
      heading(app, `hold.${step}.title`),
      lead(app, step === "present" ? "hold.present.lead" : "hold.lead"),
      element("progress", { class: "progress", max: 1, value: fraction, "aria-label": app.say("hold.progress") })),
    actions(cancel(app)),
  ];
}

const verdicts = { yes: ["tick", "good"], no: ["cross", "bad"], unknown: ["question", "attention"] };

function result(app) {
  const { document: data, security } = app.state.answer;
  const verdict = verdictOf(security);
  const rows = {
    "result.name": data.name, "result.nationality": data.nationality, "key.number": data.number,
    "key.birth": shownDate(data.dateOfBirth, app.lang, true), "key.expiry": shownDate(data.dateOfExpiry, app.lang, false),
  };
  return [
    content(
      element("div", { class: "verdict" }, sign(...verdicts[verdict]),
        element("div", {},
          heading(app, `result.${verdict}.title`), lead(app, `result.${verdict}.lead`),
          element("p", {}, app.say(`result.clone.${security.chipGenuine}`)),
          security.expired ? element("p", { class: "comment attention" }, icon("warning"), app.say("result.expired")) : null)),
      element("div", { class: "person" },
        app.state.portrait
          ? element("img", { class: "portrait", src: app.state.portrait, alt: app.say("result.portrait") }) : null,
        element("dl", { class: "facts" },
          Object.entries(rows).map(([name, value]) =>
            element("div", {}, element("dt", {}, app.say(name)), element("dd", {}, element("bdi", {}, value)))))),
      security.findings.length > 0
        ? element("details", {}, element("summary", {}, app.say("result.findings")),
          element("ul", { lang: "en", dir: "ltr" }, security.findings.map((finding) => element("li", {}, finding))))
        : null),
    actions(finish(app)),
  ];
}

export { documentKey } from "./mrz.js";

Object.assign(views, { key, hold, result });
