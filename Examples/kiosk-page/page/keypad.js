// Keys on the screen for kiosks without a keyboard: one stop of the Tab key, arrows within.

import { element } from "./dom.js";

const layouts = {
  digits: { columns: 3, keys: ["1", "2", "3", "4", "5", "6", "7", "8", "9", "erase", "0"] },
  letters: { columns: 8, keys: [..."1234567890ABCDEFGHIJKLMNOPQRSTUVWXYZ", "erase"] },
  lines: { columns: 8, keys: [..."1234567890ABCDEFGHIJKLMNOPQRSTUVWXYZ<", "newline", "erase"] },
  text: { columns: 8, keys: [..."1234567890ABCDEFGHIJKLMNOPQRSTUVWXYZ-'./", "space", "erase"] },
  phone: { columns: 3, keys: ["1", "2", "3", "4", "5", "6", "7", "8", "9", "erase", "0", "+"] },
};

function insert(field, key) {
  let [start, end] = [field.selectionStart, field.selectionEnd];
  if (key === "erase" && start === end) start = Math.max(0, start - 1);
  const added = { erase: "", newline: "\n", space: " " }[key] ?? key;
  if (field.value.length - (end - start) + added.length > field.maxLength) return;
  field.setRangeText(added, start, end, "end");
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

/** Keys that write into `field`; `say(key, values)` gives texts. */
export function keypad(field, layoutName, label, say) {
  const { columns, keys } = layouts[layoutName];
  const signs = { erase: "⌫", newline: "⏎", space: "␣" };
  const buttons = keys.map((key, index) =>
    element(
      "button",
      {
        type: "button",
        class: `key key-${signs[key] ? key : "letter"}`,
        tabindex: index === 0 ? 0 : -1,
        "data-key": key,
        "aria-label": signs[key] ? say(`keypad.${key}`) : undefined,
        onpointerdown: (event) => event.preventDefault(),
        onclick: () => insert(field, key),
      },
      signs[key] ?? key));
  const move = (event) => {
    const rtl = getComputedStyle(event.currentTarget).direction === "rtl" ? -1 : 1;
    const step = { ArrowRight: rtl, ArrowLeft: -rtl, ArrowDown: columns, ArrowUp: -columns }[event.key];
    const from = buttons.indexOf(document.activeElement);
    const to = buttons[from + step];
    if (step === undefined || from < 0 || !to) return;
    event.preventDefault();
    event.stopPropagation();
    buttons[from].tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  };
  return element(
    "div",
    {
      class: `keypad keypad-${layoutName}`,
      role: "group",
      dir: "ltr",
      "aria-label": say("keypad.label", { field: label }),
      onkeydown: move,
    },
    buttons);
}
