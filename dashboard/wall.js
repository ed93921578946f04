// A small chart for each signal. Only the visible charts are drawn.
const PIN = '<svg viewBox="0 0 16 16" aria-hidden="true"><path d="M8 1.8l1.9 3.9 4.3.6-3.1 3 .7 4.3L8 11.6l-3.8 2 .7-4.3-3.1-3 4.3-.6z"/></svg>';
const LEFT = 46, RIGHT = 10, TOP = 8, BOTTOM = 20;
const MOST_CHARTS = 500;
const MOST_NAMES = 24;

const exact = new Intl.NumberFormat("en", { maximumSignificantDigits: 6 });

function ticks(first, last, most) {
  const rough = (last - first) / most || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * power).find((size) => size >= rough);
  const found = [];
  for (let at = Math.ceil(first / step) * step; at <= last + step * 1e-9; at += step) found.push(Math.abs(at) < step * 1e-9 ? 0 : at);
  return found;
}

class Chart {
  constructor(name, model) {
    this.name = name;
    this.model = model;
    this.lines = null;
    const open = element("button", "open", name, { title: `Show ${name} large`, onclick: () => { model.opened = name; } });
    this.pin = element("button", "pin");
    this.pin.innerHTML = PIN;
    this.pin.onclick = () => {
      const pins = model.pins;
      model.pins = pins.includes(name) ? pins.filter((other) => other !== name) : [...pins, name];
    };
    this.canvas = element("canvas");
    this.note = element("div", "note", "Computing …");
    this.tip = element("div", "tip", undefined, { hidden: true });
    this.root = box("section", "chart", box("div", "head", open, this.pin), box("div", "frame", this.canvas, this.note, this.tip));
    this.root.setAttribute("aria-label", name);
    this.canvas.onmousemove = (event) => this.tell(event.offsetX, event.offsetY);
    this.canvas.onmouseleave = () => { this.tip.hidden = true; };
    this.showPin();
  }

  showPin() {
    const on = this.model.pins.includes(this.name);
    this.pin.setAttribute("aria-pressed", String(on));
    this.pin.title = on ? "Unpin" : "Keep this chart at the top";
    this.pin.setAttribute("aria-label", `${on ? "Unpin" : "Pin"} ${this.name}`);
  }

  show(lines) {
    this.lines = lines;
    this.tip.hidden = true;
    this.note.textContent = lines === null ? "Computing …" : "No values";
    this.note.hidden = Boolean(lines?.length);
    this.root.dataset.lines = lines === null ? "" : lines.length;
    this.draw();
  }

  scales() {
    const { log_x: logX, log_y: logY } = this.model;
    const all = (key, spare) => this.lines.flatMap((line) => line[key] ?? line[spare]);
    const range = (low, high, log) => {
      let first = low.reduce((a, b) => Math.min(a, b), Infinity), last = high.reduce((a, b) => Math.max(a, b), -Infinity);
      if (first === last) [first, last] = log ? [first / 2, last * 2] : [first - (Math.abs(first) * 0.1 || 1), last + (Math.abs(last) * 0.1 || 1)];
      return log ? [Math.log10(first), Math.log10(last)] : [first, last];
    };
    const x = range(all("x"), all("x"), logX), y = range(all("low", "y"), all("high", "y"), logY);
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    const place = (value, log) => (log ? Math.log10(value) : value);
    return {
      x, y, width, height,
      px: (value) => LEFT + ((place(value, logX) - x[0]) / (x[1] - x[0])) * (width - LEFT - RIGHT),
      py: (value) => height - BOTTOM - ((place(value, logY) - y[0]) / (y[1] - y[0])) * (height - TOP - BOTTOM),
      valueX: (at) => (logX ? 10 ** at : at), valueY: (at) => (logY ? 10 ** at : at),
    };
  }

  draw() {
    const { canvas } = this;
    const ratio = devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    if (!this.lines?.length || !width) return;
    const pen = canvas.getContext("2d");
    const style = getComputedStyle(this.root);
    const colour = (name) => style.getPropertyValue(name).trim();
    pen.scale(ratio, ratio);
    const scale = this.scales();
    pen.font = "10.5px Inter, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif";
    pen.fillStyle = colour("--faint");
    pen.strokeStyle = colour("--line");
    pen.lineWidth = 1;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const at of ticks(...scale.y, 4)) {
      const y = Math.round(scale.py(scale.valueY(at))) + 0.5;
      pen.beginPath(); pen.moveTo(LEFT, y); pen.lineTo(width - RIGHT, y); pen.stroke();
      pen.fillText(brief(scale.valueY(at)), LEFT - 6, y);
    }
    pen.textBaseline = "top";
    pen.textAlign = "center";
    for (const at of ticks(...scale.x, 4)) {
      const x = scale.px(scale.valueX(at));
      if (x > LEFT + 8 && x < width - 16) pen.fillText(brief(scale.valueX(at)), x, height - BOTTOM + 6);
    }
    pen.lineJoin = "round";
    for (const line of this.lines) {
      pen.fillStyle = pen.strokeStyle = line.colour;
      if (line.low) {
        pen.globalAlpha = 0.16;
        pen.beginPath();
        line.x.forEach((x, at) => pen[at ? "lineTo" : "moveTo"](scale.px(x), scale.py(line.high[at])));
        for (let at = line.x.length - 1; at >= 0; at--) pen.lineTo(scale.px(line.x[at]), scale.py(line.low[at]));
        pen.fill();
        pen.globalAlpha = 1;
      }
      pen.lineWidth = 1.5;
      pen.beginPath();
      line.x.forEach((x, at) => pen[at ? "lineTo" : "moveTo"](scale.px(x), scale.py(line.y[at])));
      if (line.x.length === 1) pen.arc(scale.px(line.x[0]), scale.py(line.y[0]), 2, 0, 7);
      pen.stroke();
    }
  }

  tell(left, top) {
    if (!this.lines?.length) return;
    const scale = this.scales();
    let best = null;
    for (const line of this.lines) {
      line.x.forEach((x, at) => {
        const distance = Math.hypot(scale.px(x) - left, (scale.py(line.y[at]) - top) * 1.5);
        if (!best || distance < best.distance) best = { distance, line, at };
      });
    }
    this.tip.hidden = !best || best.distance > 40;
    if (this.tip.hidden) return;
    const { line, at } = best;
    this.tip.replaceChildren(swatch(line.colour), element("b", "", line.label), element("span", "", `${exact.format(line.x[at])} · ${exact.format(line.y[at])}`));
    const x = scale.px(line.x[at]);
    this.tip.style.left = x > scale.width / 2 ? "" : `${x + 10}px`;
    this.tip.style.right = x > scale.width / 2 ? `${scale.width - x + 10}px` : "";
    this.tip.style.top = `${Math.max(0, Math.min(scale.py(line.y[at]) - 16, scale.height - 44))}px`;
  }
}

export function render({ model }) {
  const search = finder("find", "Find charts");
  const told = element("span", "told", "", { role: "status" });
  const grid = element("div", "grid");
  const legend = element("div", "legend", undefined, { role: "list", "aria-label": "Legend" });
  const root = box("div", "wall", box("div", "bar", search, told), legend, grid);
  const charts = new Map();
  const inSight = new Set();

  const sight = new IntersectionObserver((entries) => {
    for (const entry of entries) entry.isIntersecting ? inSight.add(entry.target.dataset.name) : inSight.delete(entry.target.dataset.name);
    ask();
  }, { rootMargin: "120px" });
  const sizes = new ResizeObserver((entries) => entries.forEach((entry) => charts.get(entry.target.dataset.name)?.draw()));

  let waiting = null;
  function ask() {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const wanted = [...inSight].sort();
      if (String(wanted) !== String(model.wanted)) model.wanted = wanted;
    }, 60);
  }

  function arrange() {
    const pins = model.pins.filter((name) => model.names.includes(name));
    const ordered = [...pins, ...model.names.filter((name) => !pins.includes(name))];
    const fits = ordered.filter(finds(search.value));
    const shown = fits.slice(0, MOST_CHARTS);
    const wanted = new Set(shown);
    for (const [name, chart] of charts) {
      if (wanted.has(name) || !chart.root.isConnected) continue;
      sight.unobserve(chart.root);
      sizes.unobserve(chart.root);
      chart.root.remove();
      inSight.delete(name);
    }
    shown.forEach((name, place) => {
      if (!charts.has(name)) {
        charts.set(name, new Chart(name, model));
        charts.get(name).root.dataset.name = name;
        charts.get(name).show(null);
      }
      const chart = charts.get(name);
      chart.showPin();
      if (grid.children[place] === chart.root) return;
      const isNew = !chart.root.isConnected;
      grid.insertBefore(chart.root, grid.children[place] ?? null);
      if (!isNew) return;
      sight.observe(chart.root);
      sizes.observe(chart.root);
    });
    const more = fits.length > shown.length ? ` · the first ${MOST_CHARTS} are shown` : "";
    told.textContent = `${fits.length === model.names.length ? "" : `${fits.length.toLocaleString("en")} of `}${model.names.length.toLocaleString("en")} signals${more}`;
    ask();
  }

  // One legend for all charts, because each run has the same colour in all charts.
  function showLegend(names) {
    const shown = names.slice(0, MOST_NAMES).map(([label, colour]) => {
      const name = box("span", "", swatch(colour), label);
      name.setAttribute("role", "listitem");
      return name;
    });
    if (names.length > MOST_NAMES) shown.push(element("span", "", `and ${names.length - MOST_NAMES} more`));
    legend.replaceChildren(...shown);
  }

  search.oninput = arrange;
  model.on(["names", "pins"], arrange);
  model.on(["log_x", "log_y"], () => charts.forEach((chart) => chart.show(null)));
  model.on("sent", () => {
    const { stale, charts: sent, legend: names } = JSON.parse(model.sent);
    if (stale) charts.forEach((chart) => chart.show(null));
    else showLegend(names);
    for (const [name, lines] of Object.entries(sent)) charts.get(name)?.show(lines);
  });
  new MutationObserver(() => charts.forEach((chart) => chart.draw())).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  arrange();
  return root;
}
