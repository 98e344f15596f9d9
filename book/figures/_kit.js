// What the interactive figures share: numbers as the book writes them, small builders of nodes, and
// the two ways of moving a thing, a pointer and the keys. Nothing here knows what a figure shows.
//
// The build puts this text inline ahead of a figure's own (book/_ext/figure.py).

export const DEGREE = Math.PI / 180;
export const MINUS = "\u2212";

/** The value, or the nearer end of the range. */
export const clamp = (value, { min, max }) => Math.min(max, Math.max(min, value));

/** A number as text, with a true minus sign and no negative zero. */
export function number(value, digits = 2) {
  const text = Math.abs(value).toFixed(digits);
  return value < 0 && Number(text) !== 0 ? MINUS + text : text;
}

/** A number without decimals. */
export const whole = (value) => number(value, 0);

// ------------------------------------------------------------------------------------------ nodes

/** Sets attributes of a node, and returns it. */
export function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

/** An SVG element. */
export function svg(tag, attributes = {}, ...children) {
  const node = set(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes);
  node.append(...children);
  return node;
}

/** An HTML element. */
export function html(tag, attributes = {}, ...children) {
  const node = set(document.createElement(tag), attributes);
  node.append(...children);
  return node;
}

/** A letter set as a variable. */
export const math = (letter) => html("i", {}, letter);

let prefixes = 0;

/** A prefix for the ids of one mounted figure, so that a page may show a figure twice. */
export function newPrefix(stem) {
  prefixes += 1;
  return `figure-${stem}-${prefixes}`;
}

// --------------------------------------------------------------------------------------- controls

/** A labelled native range: { row, input, output, show(value, text) }. */
export function slider(prefix, key, words, { min, max, step }) {
  const id = `${prefix}-${key}`;
  const input = html("input", { type: "range", id, min, max, step });
  const label = html("label", { for: id }, ...words);
  const output = html("span", { class: "value" }); // an <output> would be read out at every step
  const show = (value, text = String(value)) => {
    input.value = value;
    input.setAttribute("aria-valuetext", text);
    output.textContent = text;
  };
  return { row: html("div", { class: "slider" }, label, output, input), input, output, show };
}

/** A labelled list of choices, given as [value, text] pairs: { row, input }. */
export function select(prefix, key, words, choices) {
  const id = `${prefix}-${key}`;
  const options = choices.map(([value, text]) => html("option", { value }, text));
  const input = html("select", { id }, ...options);
  const label = html("label", { for: id }, ...words);
  return { row: html("div", { class: "choice" }, label, input), input };
}

/** A labelled box to tick: { row, input }. */
export function checkbox(prefix, key, words) {
  const id = `${prefix}-${key}`;
  const input = html("input", { type: "checkbox", id });
  const label = html("label", { for: id }, ...words);
  return { row: html("div", { class: "check" }, input, label), input };
}

/** A button; `role` names it for tests and styles. */
export function button(role, ...words) {
  return html("button", { type: "button", "data-role": role }, ...words);
}

// --------------------------------------------------------------------------------------- readings

// Text for the reader, and under `data-value` the number in full for whoever checks it.
const shower = (output) => (value, text = String(value)) => {
  output.textContent = text;
  output.dataset.value = String(value);
};

/** The figure's main number, in large type: { row, output, show(value, text) }. */
export function reading(role, ...words) {
  const output = html("strong", { "data-role": role });
  const row = html("div", { class: "reading" }, html("span", {}, ...words), output);
  return { row, output, show: shower(output) };
}

/** One small reading, a row of a `dl`: { row, output, show(value, text) }. */
export function fact(role, ...words) {
  const output = html("dd", { "data-role": role });
  return { row: html("div", {}, html("dt", {}, ...words), output), output, show: shower(output) };
}

// -------------------------------------------------------------------------------------- the frame

/** The <svg> of a figure, `box` being its viewBox: scales with the page, named by its title. */
export function drawing(prefix, title, box, ...children) {
  const id = `${prefix}-title`;
  const attributes = { viewBox: box.join(" "), role: "group", "aria-labelledby": id };
  return svg("svg", attributes, svg("title", { id }, title), ...children);
}

/** A figure's frame: picture and panel side by side (`wide`: one above the other); words below, and
 *  the node of a `voice`. */
export function frame(label, { picture, panel, words, live, wide = false }) {
  return html(
    "div",
    { class: "frame", role: "group", "aria-label": label },
    html("div", { class: wide ? "picture wide" : "picture" }, ...picture),
    html("div", { class: "panel" }, ...panel),
    html("div", { class: "words" }, ...words),
    live,
  );
}

/** A polite live region: `say(words)` reads out what `words()` gives once the figure rests. */
export function voice(rest = 400) {
  const node = html("p", { class: "spoken", role: "status", "aria-live": "polite" });
  let timer = null;
  const say = (words) => {
    clearTimeout(timer); // a drag passes many states; only the one it rests on is read out
    timer = setTimeout(() => {
      node.textContent = words();
    }, rest);
  };
  return { node, say };
}

// ---------------------------------------------------------------------------------- moving things

/** Where an event lies in the units of a drawing, [x, y] with y down. */
export function pointAt(picture, event) {
  const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(
    picture.getScreenCTM().inverse(),
  );
  return [x, y];
}

/** Makes a node draggable; all three functions get the event, and `end` may be left out. */
export function draggable(node, { start, move, end = () => {} }) {
  let pointer = null;
  node.classList.add("handle");
  node.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || pointer !== null) return;
    event.preventDefault();
    node.focus({ preventScroll: true });
    node.setPointerCapture(event.pointerId);
    node.classList.add("dragged");
    pointer = event.pointerId;
    start(event);
  });
  node.addEventListener("pointermove", (event) => {
    if (event.pointerId === pointer) move(event);
  });
  const release = (event) => {
    if (event.pointerId !== pointer) return;
    pointer = null;
    node.classList.remove("dragged");
    end(event);
  };
  for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) {
    node.addEventListener(name, release);
  }
  // `touch-action: none` alone does not keep Chromium from scrolling with a finger on SVG shapes.
  node.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
}

/** Where a key moves a value, as on a native slider; undefined when the key moves nothing. */
export function keyTarget(event, value, { min, max, step, page = 10 * step }) {
  const target = {
    ArrowRight: value + step,
    ArrowUp: value + step,
    ArrowLeft: value - step,
    ArrowDown: value - step,
    PageUp: value + page,
    PageDown: value - page,
    Home: min,
    End: max,
  }[event.key];
  if (target === undefined || event.altKey || event.ctrlKey || event.metaKey) return undefined;
  event.preventDefault();
  event.stopPropagation(); // the page may turn to the next chapter on an arrow key
  return target;
}
