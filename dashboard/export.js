// Saves the plot as a picture.
export function render({ model }) {
  const root = document.createElement("div");
  root.className = "exports";
  const buttons = ["png", "svg"].map((kind) => {
    const button = document.createElement("button");
    button.textContent = kind.toUpperCase();
    button.onclick = async () => {
      const [view] = Bokeh.index.query((view) => view.model.name === "signals");
      if (!view) return;
      const link = document.createElement("a");
      link.href = URL.createObjectURL(await view.export(kind).to_blob());
      link.download = `signals.${kind}`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    };
    root.append(button);
    return button;
  });
  const show = () => buttons.forEach((button) => { button.disabled = !model.ready; });
  model.on("ready", show);
  show();
  return root;
}
