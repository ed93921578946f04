// What the widgets of the page share; it stands before each of them. Names come from files: they are text, never HTML.
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const brief = (value) => (value !== 0 && Math.abs(value) < 0.001 ? value.toExponential(1) : compact.format(value));
const missing = (value) => value === null || value === undefined || value === "";

// An element with properties and ARIA's attributes.
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

// Whether a text has all the words that somebody looks for, in any order.
function finds(wanted) {
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  return (text) => {
    const searched = text.toLowerCase();
    return words.every((word) => searched.includes(word));
  };
}

// What the browser keeps beyond the page; one that keeps nothing does without.
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

