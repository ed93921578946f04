// Results by parameters: a scatter plot with one parameter, and parallel coordinates with several parameters.
const SVG = "http://www.w3.org/2000/svg";
const MOST_AXES = 8;
const MOST_MARKS = 8;
const [WORST, BEST] = ["#4a6fe3", "#e8590c"]; // blue and orange differ with any kind of colour vision, on both themes

function drawn(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// Round numbers in a range for the marks of an axis: multiples of 1, 2 or 5 times a power of ten. A logarithmic axis
// has powers of ten.
function roundMarks(from, to, isLog) {
  if (isLog) {
    const [low, high] = [Math.floor(Math.log10(from)), Math.ceil(Math.log10(to))];
    const step = Math.max(1, Math.ceil((high - low) / MOST_MARKS));
    const powers = Array.from({ length: Math.floor((high - low) / step) + 1 }, (_, place) => 10 ** (low + place * step));
    const marks = high - low > 2 ? powers : powers.flatMap((power) => [1, 2, 5].map((factor) => factor * power));
    return marks.filter((mark) => mark >= from * (1 - 1e-9) && mark <= to * (1 + 1e-9));
  }
  if (to <= from) return [from];
  const power = 10 ** Math.floor(Math.log10((to - from) / 4));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power * 4.5 >= to - from);
  const first = Math.ceil(from / step - 1e-9);
  return Array.from({ length: Math.floor(to / step + 1e-9) - first + 1 }, (_, place) => (first + place) * step);
}

// The positive and negative powers of ten in a range, and 0.
function powersBetween(from, to, least) {
  const [low, high] = [Math.floor(Math.log10(least)), Math.ceil(Math.log10(Math.max(-from, to)))];
  const powers = Array.from({ length: high - low + 1 }, (_, place) => 10 ** (low + place));
  return [...powers.map((power) => -power).reverse(), 0, ...powers].filter((mark) => mark >= from && mark <= to);
}

// A logarithm for positive and negative numbers. It is linear for sizes below ``least``.
const symmetricLog = (least) => (value) => Math.sign(value) * Math.log10(1 + Math.abs(value) / least);

// An axis for the values of one parameter or result. Words have equal distances. Numbers have a linear or a logarithmic
// scale. If the user chose no scale, it is logarithmic if all numbers are positive and the largest is at least 100
// times the smallest. Runs without a value are at the start of the axis, at a separate mark.
function axisOf(values, isResult = false, chosen = "") {
  const there = values.filter((value) => !missing(value));
  const start = there.length < values.length && there.length ? 0.14 : 0;
  const inside = (part) => start + part * (1 - start);
  const marks = there.length < values.length ? [[0, isResult ? "none" : "not set"]] : [];
  const numbers = there.every((value) => typeof value === "number");
  if (!numbers || !there.length) {
    const words = [...new Set(there.map(String))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    const place = new Map(words.map((word, at) => [word, inside(words.length > 1 ? at / (words.length - 1) : 0.5)]));
    return { at: (value) => place.get(String(value)) ?? 0, marks: [...marks, ...words.map((word) => [place.get(word), word])] };
  }
  const [first, last] = [Math.min(...there), Math.max(...there)];
  const isLog = chosen ? chosen === "log" && first !== last : first > 0 && last / first >= 100;
  const sizes = there.map(Math.abs).filter((size) => size > 0);
  const scale = !isLog ? (value) => value : first > 0 ? Math.log10 : symmetricLog(Math.min(...sizes));
  const [from, to] = [scale(first), scale(last)];
  const at = (value) => (missing(value) ? 0 : inside(to > from ? (scale(value) - from) / (to - from) : 0.5));
  const distinct = [...new Set(there)].sort((a, b) => a - b);
  const isListed = !isResult && distinct.length <= MOST_MARKS;
  const apart = [];
  for (const value of isListed ? distinct : isLog && first <= 0 ? powersBetween(first, last, Math.min(...sizes)) : roundMarks(first, last, isLog)) if (!apart.length || at(value) - at(apart.at(-1)) > 0.05) apart.push(value);
  return { at, marks: [...marks, ...apart.map((value) => [at(value), brief(value)])], isLog, start };
}

const last = (name) => name.split(".").slice(-2).join(".");

function chooser(label, names, value, change) {
  const select = box("select", "", ...names.map((name) => element("option", "", name, { value: name })));
  select.value = value;
  select.setAttribute("aria-label", label);
  select.onchange = () => change(select.value);
  return box("label", "choice", label, select);
}

const SCALES = { "": "automatic", linear: "linear", log: "logarithmic" };

function scales(label, value, change) {
  const select = box("select", "", ...Object.entries(SCALES).map(([key, text]) => element("option", "", text, { value: key })));
  Object.assign(select, { value, title: label, onchange: () => change(select.value) });
  select.setAttribute("aria-label", label);
  return select;
}

export function render({ model }) {
  const [bar, plots] = [element("div", "bar"), element("div", "plots")];
  const tip = element("div", "tip", undefined, { hidden: true });
  const root = box("div", "compare", bar, plots, tip);
  let given = { runs: [], parameters: [], differing: [], results: [], which: "" };
  let weighed = { result: "", shares: {}, text: "" };

  const across = () => (given.parameters.includes(model.across) ? model.across : ranked()[0] ?? given.parameters[0]);
  const result = () => (given.results.includes(model.result) ? model.result : given.results[0]);
  const shares = () => (weighed.result === result() ? weighed.shares : {});
  // The most important parameters are first. Parameters without importance, such as the seed, keep the server's order.
  const ranked = () => [...given.differing].sort((a, b) => (shares()[b] ?? 0) - (shares()[a] ?? 0));
  const axes = () => (model.axes.length ? model.axes.filter((name) => given.parameters.includes(name)) : ranked().slice(0, 5));

  function tell(event, run) {
    const facts = [...new Set([across(), ...axes(), result()])].filter(Boolean).map((name) => {
      const value = run.values[name];
      return box("div", "fact", element("span", "", `${last(name)} `), element("b", "", value === null || value === undefined ? "–" : String(value)));
    });
    tip.replaceChildren(swatch(run.colour), element("b", "", run.label), ...facts);
    tip.hidden = false;
    const room = root.getBoundingClientRect();
    const [x, y] = [event.clientX - room.left, event.clientY - room.top];
    tip.style.left = `${Math.min(x + 14, room.width - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(y + 14, room.height - tip.offsetHeight - 8)}px`;
    root.querySelectorAll("[data-run]").forEach((mark) => mark.classList.toggle("faint", mark.dataset.run !== run.id));
  }
  function hush() {
    tip.hidden = true;
    root.querySelectorAll(".faint").forEach((mark) => mark.classList.remove("faint"));
  }
  const listen = (mark, run) => {
    mark.dataset.run = run.id;
    mark.addEventListener("mousemove", (event) => tell(event, run));
    mark.addEventListener("mouseleave", hush);
    return mark;
  };

  function scatter(width, height) {
    const [left, right, top, bottom] = [64, 16, 14, 46];
    const svg = drawn("svg", { width, height, role: "img", "aria-label": `${result()} against ${across()}` });
    const runs = given.runs;
    svg.classList.add("scatter");
    const [x, y] = [axisOf(runs.map((run) => run.values[across()]), false, model.across_scale), axisOf(runs.map((run) => run.values[result()]), true, model.result_scale)];
    const inset = 14;
    const px = (value) => left + inset + x.at(value) * (width - left - right - 2 * inset);
    const py = (value) => height - bottom - inset - y.at(value) * (height - top - bottom - 2 * inset);
    for (const [at, text] of y.marks) {
      const place = height - bottom - inset - at * (height - top - bottom - 2 * inset);
      svg.append(drawn("line", { x1: left, x2: width - right, y1: place, y2: place, class: "grid" }), drawn("text", { x: left - 8, y: place, class: "mark end" }, text));
    }
    let before = -Infinity;
    for (const [at, text] of x.marks) {
      const place = left + inset + at * (width - left - right - 2 * inset);
      if (place - before < 12 + 6.5 * Math.min(14, text.length)) continue; // otherwise the words would cover each other
      before = place;
      svg.append(drawn("line", { x1: place, x2: place, y1: top, y2: height - bottom, class: "grid" }), drawn("text", { x: place, y: height - bottom + 15, class: "mark middle" }, text.length > 14 ? `${text.slice(0, 13)}…` : text));
    }
    svg.append(drawn("text", { x: (left + width - right) / 2, y: height - 8, class: "title middle" }, `${last(across() ?? "")}${x.isLog ? " (logarithmic)" : ""}`));
    svg.append(drawn("text", { x: 14, y: (top + height - bottom) / 2, class: "title middle", transform: `rotate(-90 14 ${(top + height - bottom) / 2})` }, `${result() ?? ""}${y.isLog ? " (logarithmic)" : ""}`));
    for (const run of runs) svg.append(listen(drawn("circle", { cx: px(run.values[across()]), cy: py(run.values[result()]), r: 5.5, fill: run.colour, class: "dot" }), run));
    return svg;
  }

  function parallel(width, height) {
    const names = [...axes(), result()].filter(Boolean);
    const [left, right, top, bottom] = [56, 70, 46, 16];
    const svg = drawn("svg", { width, height, role: "img", "aria-label": `Parallel coordinates of ${names.map(last).join(", ")}` });
    svg.classList.add("parallel");
    const ends = [drawn("stop", { offset: 0, "stop-color": BEST }), drawn("stop", { offset: 1, "stop-color": WORST })];
    svg.append(drawn("linearGradient", { id: "results", x1: 0, x2: 0, y1: 0, y2: 1 }, ...ends));
    const made = names.map((name) => axisOf(given.runs.map((run) => run.values[name]), name === result(), name === result() ? model.result_scale : name === across() ? model.across_scale : ""));
    const px = (place) => left + (names.length > 1 ? place / (names.length - 1) : 0.5) * (width - left - right);
    const py = (at) => height - bottom - at * (height - top - bottom);
    const best = made.at(-1);
    // The best results are drawn last, on top of the other results.
    const placed = given.runs.map((run) => [run, best.at(run.values[result()])]).sort((a, b) => a[1] - b[1]);
    for (const [run, at] of placed) {
      const path = names.map((name, place) => `${place ? "L" : "M"}${px(place)},${py(made[place].at(run.values[name]))}`).join("");
      const share = (at - best.start) / (1 - best.start);
      const stroke = missing(run.values[result()]) ? "var(--faint)" : `color-mix(in oklab, ${WORST}, ${BEST} ${Math.round(100 * share)}%)`;
      svg.append(listen(drawn("path", { d: path, stroke, class: "run" }), run));
    }
    names.forEach((name, place) => {
      const room = Math.floor((width - left - right) / Math.max(1, names.length - 1) / 7);
      const text = last(name).length > room ? `${last(name).slice(0, Math.max(3, room - 1))}…` : last(name);
      svg.append(drawn("line", { x1: px(place), x2: px(place), y1: top, y2: height - bottom, class: "axis" }));
      if (name === result()) svg.append(drawn("rect", { x: px(place) - 2, y: top, width: 5, height: (height - top - bottom) * (1 - (made[place].start ?? 0)), fill: "url(#results)" }));
      const ends = names.length > 1 && place === 0 ? "start" : place === names.length - 1 ? "end" : "middle";
      svg.append(drawn("text", { x: px(place) + { start: -40, middle: 0, end: 60 }[ends], y: place % 2 ? 16 : 32, class: `title ${ends}` }, text, drawn("title", {}, name)));
      const most = place < names.length - 1 ? Math.max(4, Math.min(12, room - 2)) : 9;
      for (const [at, mark] of made[place].marks) svg.append(drawn("text", { x: px(place) + 7, y: py(at), class: "mark start" }, mark.length > most ? `${mark.slice(0, most - 1)}…` : mark));
    });
    return svg;
  }

  function importance() {
    const told = weighed.result === result();
    const lines = Object.entries(shares()).slice(0, MOST_AXES).map(([name, share]) => {
      const bar = element("i", "share");
      bar.style.width = `${Math.round(100 * share)}%`;
      const open = element("button", "weight", undefined, { title: `Draw ${name}` });
      open.append(element("span", "", last(name)), box("span", "track", bar), element("b", "", `${Math.round(100 * share)}%`));
      open.onclick = () => { model.across = name; };
      return open;
    });
    return box("section", "importance", element("h3", "", `Importance for ${result().toLowerCase()}`), ...lines, element("p", "", told ? weighed.text : "Computing …"));
  }

  function axisButtons() {
    const lines = [...ranked(), ...given.parameters.slice(given.differing.length)].map((name) => {
      const check = checkbox({ checked: axes().includes(name) });
      check.onchange = () => {
        const chosen = check.checked ? [...axes(), name] : axes().filter((other) => other !== name);
        model.axes = chosen.slice(-MOST_AXES);
      };
      return box("label", "", check, element("span", "", name));
    });
    const shown = box("details", "axes", element("summary", "", `Axes (${axes().length})`), box("div", "list", ...lines));
    shown.open = isOpen;
    shown.ontoggle = () => { isOpen = shown.open; };
    return shown;
  }
  let isOpen = false;

  function draw() {
    hush();
    if (!given.runs.length || !given.parameters.length) {
      bar.replaceChildren();
      plots.replaceChildren(element("div", "nothing", given.runs.length ? "No parameters: the JSON files next to the CSVs are missing." : "No runs to compare."));
      return;
    }
    const focused = bar.contains(root.getRootNode().activeElement) ? root.getRootNode().activeElement.getAttribute("aria-label") : null;
    bar.replaceChildren(
      chooser("Parameter", given.parameters, across(), (name) => { model.across = name; }),
      scales("Scale of the parameter", model.across_scale, (scale) => { model.across_scale = scale; }),
      chooser("Result", given.results, result(), (name) => { model.result = name; }),
      scales("Scale of the result", model.result_scale, (scale) => { model.result_scale = scale; }),
      axisButtons(),
      element("span", "which", given.which),
    );
    if (focused) bar.querySelector(`[aria-label="${focused}"]`)?.focus();
    const beside = plots.clientWidth >= 760;
    plots.classList.toggle("beside", beside);
    const height = Math.max(220, beside ? plots.clientHeight - 12 : plots.clientHeight / 2 - 12);
    const width = Math.max(260, beside ? plots.clientWidth * 0.42 - 24 : plots.clientWidth - 24);
    const weights = importance();
    const right = box("div", "right", weights);
    plots.replaceChildren(scatter(width, height), right);
    const wide = beside ? plots.clientWidth - width - 48 : width;
    right.append(parallel(wide, Math.max(200, beside ? height - weights.offsetHeight : height)));
  }

  model.on("sent", () => { given = JSON.parse(model.sent); draw(); });
  model.on(["across", "across_scale", "result", "result_scale", "axes"], draw);
  new ResizeObserver(draw).observe(plots);
  model.on("importance", () => { weighed = JSON.parse(model.importance); draw(); });
  if (model.sent) given = JSON.parse(model.sent);
  if (model.importance) weighed = JSON.parse(model.importance);
  draw();
  return root;
}
