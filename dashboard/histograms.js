// The distributions of actions and weights over steps, with a column for each evaluation. Darker means more values.
const LEFT = 52, BOTTOM = 18, TOP = 6;

class Picture {
  constructor({ name, colour, rows }) {
    this.rows = rows;
    this.colour = colour;
    this.low = Math.min(...rows.map((row) => row.low));
    this.high = Math.max(...rows.map((row) => row.high));
    if (this.low === this.high) [this.low, this.high] = [this.low - 0.5, this.high + 0.5];
    this.canvas = element("canvas", "", undefined, { role: "img", "aria-label": `Distribution of ${name}` });
    this.told = element("span", "told", "");
    this.canvas.onpointermove = (event) => this.tell(event.offsetX, event.offsetY);
    this.canvas.onpointerleave = () => { this.told.textContent = ""; };
    this.root = box("figure", "", box("figcaption", "", swatch(colour), element("b", "", name)), this.canvas, this.told);
  }

  column(place, width) {
    const share = (width - LEFT) / this.rows.length;
    return [LEFT + place * share, Math.max(1, share - 0.5)];
  }

  y(value, height) { return TOP + (1 - (value - this.low) / (this.high - this.low)) * (height - TOP - BOTTOM); }

  draw() {
    const { canvas, rows } = this;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (!width) return;
    const ratio = devicePixelRatio || 1;
    [canvas.width, canvas.height] = [width * ratio, height * ratio];
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.fillStyle = this.colour;
    rows.forEach((row, place) => {
      const most = Math.max(...row.counts);
      const [left, wide] = this.column(place, width);
      const size = (row.high - row.low) / row.counts.length;
      row.counts.forEach((count, bin) => {
        if (!count) return;
        const top = this.y(row.low + (bin + 1) * size, height), bottom = this.y(row.low + bin * size, height);
        pen.globalAlpha = 0.12 + 0.88 * Math.sqrt(count / most);
        pen.fillRect(left, Math.min(top, bottom - 2), wide, Math.max(2, bottom - top));
      });
    });
    pen.globalAlpha = 1;
    pen.fillStyle = getComputedStyle(this.root).getPropertyValue("--faint").trim();
    pen.font = "10.5px Inter, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif";
    pen.textAlign = "right";
    pen.fillText(brief(this.high), LEFT - 6, TOP + 8);
    pen.fillText(brief(this.low), LEFT - 6, height - BOTTOM);
    pen.fillText(`step ${brief(rows.at(-1).steps)}`, width, height - 4);
    pen.textAlign = "left";
    pen.fillText(brief(rows[0].steps), LEFT, height - 4);
  }

  tell(left, top) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const row = this.rows[Math.floor(((left - LEFT) / (width - LEFT)) * this.rows.length)];
    if (!row) return;
    const value = this.low + (1 - (top - TOP) / (height - TOP - BOTTOM)) * (this.high - this.low);
    const bin = Math.min(row.counts.length - 1, Math.floor(((value - row.low) / (row.high - row.low || 1)) * row.counts.length));
    const total = row.counts.reduce((sum, count) => sum + count, 0);
    const share = bin >= 0 && value <= row.high ? row.counts[bin] / total : 0;
    this.told.textContent = `step ${brief(row.steps)} · about ${brief(value)} · ${(100 * share).toFixed(1)}% of ${brief(total)} values`;
  }
}

export function render({ model }) {
  const grid = element("div", "grid");
  const nothing = element("div", "nothing");
  const root = box("div", "histograms", grid, nothing);
  let pictures = new Map();
  const sizes = new ResizeObserver((entries) => entries.forEach((entry) => pictures.get(entry.target)?.draw()));

  function show() {
    const { charts, message } = JSON.parse(model.sent || '{"charts": [], "message": "Reading …"}');
    sizes.disconnect();
    pictures = new Map(charts.map((chart) => new Picture(chart)).map((picture) => [picture.canvas, picture]));
    grid.replaceChildren(...[...pictures.values()].map((picture) => picture.root));
    for (const canvas of pictures.keys()) sizes.observe(canvas);
    nothing.textContent = message;
    nothing.hidden = !message;
  }

  new MutationObserver(() => pictures.forEach((picture) => picture.draw())).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  model.on("sent", show);
  show();
  return root;
}
