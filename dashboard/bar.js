// The buttons at the top right. This widget also sets the address, the history and the theme of the browser's window.
const SUN = '<svg viewBox="0 0 20 20"><circle cx="10" cy="10" r="3.6"/><path d="M10 1.8v2.4M10 15.8v2.4M1.8 10h2.4M15.8 10h2.4M4.2 4.2l1.7 1.7M14.1 14.1l1.7 1.7M4.2 15.8l1.7-1.7M14.1 5.9l1.7-1.7"/></svg>';
const MOON = '<svg viewBox="0 0 20 20"><path d="M16.6 11.9A7 7 0 0 1 8.1 3.4a7 7 0 1 0 8.5 8.5z"/></svg>';

// The saved views: a list in which users open or remove views, and a field with which they save the current view.
function savedViews(model) {
  const list = element("div", "views");
  const name = element("input", "", undefined, { placeholder: "Name this view", "aria-label": "Name of the view", maxLength: 80 });
  const save = element("button", "", "Save", { type: "submit" });
  const form = box("form", "", name, save);
  const shown = box("details", "saved", element("summary", "", "Views", { title: "Saved views of this directory" }), box("div", "menu", list, form));
  let count = 0;
  const tell = (name, saves) => { model.saving = JSON.stringify({ name, saves, count: (count += 1) }); };
  form.onsubmit = (event) => {
    event.preventDefault();
    if (name.value.trim()) tell(name.value, true);
    name.value = "";
  };
  const show = () => {
    form.hidden = !model.editable;
    const views = JSON.parse(model.views).map(([title, query]) => {
      const open = element("button", "open", title, { title: `Open ${title}` });
      open.onclick = () => {
        shown.open = false;
        history.pushState(null, "", query);
        model.query = query;
      };
      const drop = element("button", "drop", "×", { "aria-label": `Remove ${title}`, hidden: !model.editable, onclick: () => tell(title, false) });
      return box("div", "view", open, drop);
    });
    list.replaceChildren(...(views.length ? views : [element("p", "", "No saved views yet.")]));
  };
  shown.onkeydown = (event) => { if (event.key === "Escape") { shown.open = false; shown.firstChild.focus(); } };
  addEventListener("pointerdown", (event) => { if (!event.composedPath().includes(shown)) shown.open = false; });
  model.on(["views", "editable"], show);
  show();
  return shown;
}

export function render({ model }) {
  const liveText = element("span", "", "Live");
  const live = box("button", "live", element("i", "lamp"), liveText);
  live.title = "Show new rows as they are written";
  const copy = element("button", "copy", "Copy link", { title: "Copy a link that opens this view" });
  const theme = element("button", "icon");
  const settings = element("button", "settings", "Settings", { "aria-expanded": "false" });
  const views = savedViews(model);
  const root = box("div", "bar", settings, live, views, copy, theme);

  const showLive = () => {
    live.setAttribute("aria-pressed", String(model.live));
    liveText.textContent = model.live ? "Live" : "Paused";
  };
  const showTheme = () => {
    if (!model.theme) return;
    document.documentElement.dataset.theme = model.theme;
    theme.innerHTML = model.theme === "dark" ? SUN : MOON;
    const other = model.theme === "dark" ? "light" : "dark";
    theme.title = `Change to the ${other} theme`;
    theme.setAttribute("aria-label", theme.title);
  };
  // The browser's history. Changes by the user are steps of the history; changes by the page before the user's first
  // action are not. Several quick changes of the same field, for example while the user types, are one step.
  const TOGETHER_MILLISECONDS = 1500;
  let isTouched = false;
  let last = { what: "", time: 0 };
  for (const kind of ["pointerdown", "keydown", "wheel"]) {
    addEventListener(kind, () => { isTouched = true; }, { capture: true, passive: true });
  }
  const whatDiffers = (before, after) => {
    const [old, now] = [new URLSearchParams(before), new URLSearchParams(after)];
    const names = new Set([...old.keys(), ...now.keys()]);
    return [...names].filter((name) => String(old.getAll(name)) !== String(now.getAll(name))).sort().join();
  };
  const showAddress = () => {
    if (model.query === location.search) return;
    const what = whatDiffers(location.search, model.query);
    const time = performance.now();
    const isNext = isTouched && what && (what !== last.what || time - last.time > TOGETHER_MILLISECONDS);
    history[isNext ? "pushState" : "replaceState"](null, "", model.query || location.pathname);
    last = { what, time };
  };
  addEventListener("popstate", () => { model.query = location.search; });

  live.onclick = () => { model.live = !model.live; };
  theme.onclick = () => { model.theme = model.theme === "dark" ? "light" : "dark"; };
  copy.onclick = async () => {
    try {
      await navigator.clipboard.writeText(location.href);
    } catch {
      // Without https there is no clipboard API except on localhost.
      const field = element("textarea", "", location.href);
      document.body.append(field);
      field.select();
      document.execCommand("copy");
      field.remove();
    }
    copy.textContent = "Copied";
    setTimeout(() => { copy.textContent = "Copy link"; }, 1500);
  };
  // On a narrow page, the settings are hidden. The button shows them on top of the plot.
  const page = document.documentElement;
  const showSettings = (on) => {
    page.toggleAttribute("data-settings", on);
    settings.setAttribute("aria-expanded", String(on));
  };
  settings.onclick = () => showSettings(!page.hasAttribute("data-settings"));
  document.querySelector(".shade").onclick = () => showSettings(false);
  addEventListener("keydown", (event) => { if (event.key === "Escape") showSettings(false); });

  // The line between the table and the plot. Mouse and arrow keys move it. The browser stores its place.
  const SPLIT = "coach-split";
  const split = document.querySelector(".split");
  const main = document.querySelector("main");
  const setSplit = (share, keep) => {
    const part = Math.min(0.85, Math.max(0.12, share));
    page.style.setProperty("--split", `${(100 * part).toFixed(2)}%`);
    split.setAttribute("aria-valuenow", String(Math.round(100 * part)));
    if (keep) storage.set(SPLIT, part);
  };
  const splitNow = () => main.firstElementChild.offsetHeight / main.clientHeight;
  if (storage.get(SPLIT) > 0) setSplit(storage.get(SPLIT));
  split.onpointerdown = (event) => {
    event.preventDefault();
    split.focus();
    split.setPointerCapture(event.pointerId);
    split.onpointermove = (moved) => setSplit((moved.clientY - main.getBoundingClientRect().top) / main.clientHeight, true);
  };
  split.onlostpointercapture = () => { split.onpointermove = null; };
  split.onkeydown = (event) => {
    const by = { ArrowUp: -0.04, ArrowDown: 0.04 }[event.key];
    if (!by) return;
    event.preventDefault();
    setSplit(splitNow() + by, true);
  };
  split.ondblclick = () => {
    page.style.removeProperty("--split");
    storage.remove(SPLIT);
  };

  const show = (place, text) => {
    place.hidden = !text;
    place.textContent = text;
  };
  const [veil, beside] = [".veil", ".reading"].map((name) => document.querySelector(name));

  const showCover = () => { page.toggleAttribute("data-covered", model.covered); };
  model.on("computing", () => show(veil, model.computing));
  model.on("reading", () => show(beside, model.reading));
  model.on("covered", showCover);
  model.on("live", showLive);
  model.on("theme", showTheme);
  model.on("query", showAddress);
  listenToPlots();
  showLive();
  showCover();
  if (!model.theme) model.theme = document.documentElement.dataset.theme || "light";
  showTheme();
  return root;
}
