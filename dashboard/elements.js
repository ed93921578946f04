// The functions that all widgets of the page use; this file is put in front of the code of each widget. Names come from
// files, so they are always inserted as text, never as HTML.
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const brief = (value) => (value !== 0 && Math.abs(value) < 0.001 ? value.toExponential(1) : compact.format(value));
const missing = (value) => value === null || value === undefined || value === "";

// Makes an element. Properties that the element does not have, such as ARIA's, become attributes.
function element(tag, className, text, properties = {}) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(properties)) name in made ? (made[name] = value) : made.setAttribute(name, value);
  return made;
}

function box(tag, className, ...children) {
  const made = element(tag, className);
  made.append(...children);
  return made;
}

const checkbox = (properties) => element("input", "", undefined, { type: "checkbox", ...properties });
const finder = (className, label) => element("input", className, undefined, { type: "search", placeholder: label, "aria-label": label });

// Returns a function that tells whether a text contains all words of a search, in any order.
function finds(wanted) {
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  return (text) => {
    const searched = text.toLowerCase();
    return words.every((word) => searched.includes(word));
  };
}

// Values that the browser stores between visits. If a browser does not allow this, nothing is stored.
const storage = {
  get(key) { try { return JSON.parse(localStorage.getItem(key)); } catch { return null; } },
  set(key, value) { try { localStorage.setItem(key, JSON.stringify(value)); } catch { /* as above */ } },
  remove(key) { try { localStorage.removeItem(key); } catch { /* as above */ } },
};

function download(blob, name) {
  const link = element("a", "", undefined, { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function swatch(colour, className = "") {
  const made = element("i", className);
  if (colour) made.style.background = colour;
  return made;
}

