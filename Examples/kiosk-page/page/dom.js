// Elements without markup in strings: what a service or a customer wrote never becomes HTML.

/** Makes an element: attributes, `on…` listeners, children as nodes and texts. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else made.setAttribute(key, value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

// 24 by 24, strokes.
const drawings = {
  card: ["M3 7a2 2 0 0 1 2-2h14a2 2 0 0 1 2 2v10a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2z", "M3 10h18", "M7 15h4"],
  passport: ["M6 3h12a1 1 0 0 1 1 1v16a1 1 0 0 1-1 1H6a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1z", "M12 7a3 3 0 1 0 0 6a3 3 0 1 0 0-6", "M9 17h6"],
  camera: ["M4 8h3l2-3h6l2 3h3a1 1 0 0 1 1 1v9a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1V9a1 1 0 0 1 1-1z", "M12 10a3.5 3.5 0 1 0 0 7a3.5 3.5 0 1 0 0-7"],
  phone: ["M8 2h8a1 1 0 0 1 1 1v18a1 1 0 0 1-1 1H8a1 1 0 0 1-1-1V3a1 1 0 0 1 1-1z", "M11 19h2"],
  star: ["M12 3l2.7 5.8 6.3.8-4.6 4.3 1.2 6.3L12 17.1l-5.6 3.1 1.2-6.3L3 9.6l6.3-.8z"],
  tick: ["M4.5 12.5l5 5L19.5 7"],
  cross: ["M6 6l12 12", "M18 6L6 18"],
  question: ["M8.5 9a3.5 3.5 0 1 1 5.5 2.9c-1.300.9-2 1.600-2 3.1", "M12 19v.1"],
  warning: ["M12 4L2.5 20h19z", "M12 10v5", "M12 17.5v.1"],
  clock: ["M12 3a9 9 0 1 0 0 18a9 9 0 1 0 0-18", "M12 7v5l3.5 2"],
  pause: ["M9 6v12", "M15 6v12"],
  print: ["M7 8V3h10v5", "M7 17H4V9h16v8h-3", "M7 14h10v7H7z"],
};

/** Makes an SVG with a path for each line. */
export function drawing(attributes, lines) {
  const make = (name, given) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(given)) made.setAttribute(key, value);
    return made;
  };
  const svg = make("svg", attributes);
  svg.append(...lines.map((d) => make("path", { d })));
  return svg;
}

/** A drawing beside a text that says the same. */
export const icon = (name) => drawing({ viewBox: "0 0 24 24", "aria-hidden": "true", class: "icon" }, drawings[name]);

/** The address of an image in memory; the caller revokes it. */
export function imageAddress({ imageData, mimeType }) {
  const bytes = Uint8Array.from(atob(imageData), (letter) => letter.charCodeAt(0));
  return URL.createObjectURL(new Blob([bytes], { type: mimeType }));
}
