// One clock hand for each pair of a sinusoidal encoding, over the bits of the same position.
// A second hand stands some positions ahead: move both, and the angle between them stays.
//
//   controls -> state -> compute(state) -> draw(parts, state, view)
//
// Everything up to the sentences is pure, so a test can hold it to NumPy's values.
// Angles are radians, clockwise from twelve o'clock: right is the sine, up is the cosine.

import {
  DEGREE, button, drawing, fact, frame, html, newPrefix, number, reading, select, set, slider, svg,
  voice, whole,
} from "./_kit.js";

export const POSITION = { min: 0, max: 63, step: 1 };
export const OFFSET = { min: 0, max: 20, step: 1 };
export const BITS = 6; // enough for the positions above
const WIDTHS = ["4", "8", "12"];
const BASES = [["halving", "halves each hand"], ["100", "100"], ["10000", "10000"]];

export const INITIAL = Object.freeze({
  position: 5,
  offset: 3, // the second position is this much further on
  dim: 12,
  base: "halving", // each hand half as fast as the one before, as bits are
});

// ---------------------------------------------------------------------------------------- compute

export function baseOf({ base, dim }) {
  return base === "halving" ? 2 ** (dim / 2) : Number(base);
}

export function frequencies(dim, base) {
  return Array.from({ length: dim / 2 }, (_, i) => base ** ((-2 * i) / dim));
}

export function encode(position, dim, base) {
  return frequencies(dim, base).flatMap((w) => [Math.sin(position * w), Math.cos(position * w)]);
}

/** Bits of a position, the fastest first. */
export function bitsOf(position) {
  return Array.from({ length: BITS }, (_, k) => (position >> k) & 1);
}

const sum = (values) => values.reduce((total, value) => total + value, 0);

/** Everything the picture shows. */
export function compute(state) {
  const base = baseOf(state);
  const first = encode(state.position, state.dim, base);
  const second = encode(state.position + state.offset, state.dim, base);
  return {
    base,
    first,
    second,
    bits: bitsOf(state.position),
    hands: frequencies(state.dim, base).map((frequency, i) => ({
      frequency,
      wavelength: (2 * Math.PI) / frequency,
      angle: state.position * frequency,
      turn: state.offset * frequency, // from the first hand to the second, the same anywhere
      sine: first[2 * i],
      cosine: first[2 * i + 1],
    })),
    product: sum(first.map((value, j) => value * second[j])),
    distance: Math.hypot(...first.map((value, j) => value - second[j])),
  };
}

// ------------------------------------------------------------------------------------------ words

/** The turn of a hand in words: whole degrees, one digit below ten. */
export function degrees(angle) {
  const size = Math.abs(angle / DEGREE);
  return `${number(angle / DEGREE, size === 0 || size >= 10 ? 0 : 1)}°`;
}

/** The bits of a position as they are read, the slowest first. */
export function binary(position) {
  return [...bitsOf(position)].reverse().join("");
}

/** What is so: the clock and the odometer at this position. */
export function relationText(state) {
  if (state.position === 0) return "Position 0: every hand points to twelve, and every bit is 0.";
  const here = `Position ${state.position} is ${binary(state.position)} in binary.`;
  if (state.base === "halving") {
    return `${here} Each hand is half as fast as the one before, as the bits are.`;
  }
  const slowest = compute(state).hands.at(-1);
  const turn = `the slowest hand needs ${whole(slowest.wavelength)} tokens for a turn.`;
  return `${here} With base ${state.base} ${turn}`;
}

const angles = (hands, steps) => hands.map((hand) => degrees(steps * hand.frequency)).join(", ");

/** What the reader's last movement of "position" or "offset" did. */
export function changeText(before, after, key) {
  const [old, now] = [compute(before), compute(after)];
  const shift = after[key] - before[key];
  if (shift === 0) return "";
  if (key === "position") {
    const still = `product is still ${number(now.product)}.`;
    const from = `From ${before.position} to ${after.position} the hands turn by`;
    return `${from} ${angles(now.hands, shift)}. Both of a dial turn alike: the ${still}`;
  }
  if (after.offset === 0) return "Offset 0: the second hand lies on the first in every dial.";
  const apart = `Wherever you move them, the hands of a dial stay ${angles(now.hands, after.offset)} apart`;
  return `${apart}. The product went from ${number(old.product)} to ${number(now.product)}.`;
}

// -------------------------------------------------------------------------------------- drawing

const RADIUS = 44;
const CELL = { width: 124, height: 160 };
const COLUMNS = 3;

// Where a hand of some length ends: right is the sine, up is the cosine (y of a drawing is down).
const tip = (angle, length) =>
  [length * Math.sin(angle), -length * Math.cos(angle)].map((v) => v.toFixed(2)).join(" ");

function wedge(from, turn) {
  const open = turn % (2 * Math.PI);
  if (open < 1e-9) return "";
  const radius = RADIUS / 2;
  const ends = [tip(from, radius), tip(from + open, radius)];
  return `M 0 0 L ${ends[0]} A ${radius} ${radius} 0 ${open > Math.PI ? 1 : 0} 1 ${ends[1]} Z`;
}

function dial(i, count) {
  const perRow = count === 4 ? 2 : Math.min(count, COLUMNS);
  const left = ((COLUMNS - perRow) * CELL.width) / 2;
  const x = left + CELL.width * ((i % perRow) + 0.5);
  const y = CELL.height * Math.floor(i / perRow) + RADIUS + 6;
  const text = (line, kind) =>
    svg("text", { class: kind, "text-anchor": "middle", y: RADIUS + 18 + 18 * line });
  const parts = {
    between: svg("path", { class: "wedge" }),
    second: svg("path", { class: "line series-2", "stroke-dasharray": "7 4" }),
    first: svg("path", { class: "shaft series-1", "data-hand": i }),
    name: text(0, ""),
    sine: text(1, "small"),
    cosine: text(2, "small"),
  };
  const face = [
    svg("circle", { class: "tick long", r: RADIUS }),
    svg("path", { class: "tick long", d: `M 0 ${-RADIUS} V ${7 - RADIUS}` }),
  ];
  const group = svg("g", { transform: `translate(${x} ${y})` }, ...face, ...Object.values(parts));
  return { group, ...parts };
}

/** As many dials as there are pairs. */
function layOut(parts, count) {
  parts.dials = Array.from({ length: count }, (_, i) => dial(i, count));
  parts.scene.replaceChildren(...parts.dials.map(({ group }) => group));
}

/** Brings the page's nodes into line with one state and its view. */
export function draw(parts, state, view) {
  if (parts.dials.length !== view.hands.length) layOut(parts, view.hands.length);
  view.hands.forEach((hand, i) => {
    const { between, second, first, name, sine, cosine } = parts.dials[i];
    set(first, { d: `M 0 0 L ${tip(hand.angle, RADIUS - 6)}` });
    set(second, { d: `M 0 0 L ${tip(hand.angle + hand.turn, RADIUS - 2)}` });
    set(between, { d: wedge(hand.angle, hand.turn) });
    name.textContent = `pair ${i}, bit ${view.bits[i]}`;
    sine.textContent = `sine ${number(hand.sine, 4)}`;
    cosine.textContent = `cosine ${number(hand.cosine, 4)}`;
  });
  parts.sliders.position.show(state.position);
  const second = state.position + state.offset;
  parts.sliders.offset.show(state.offset, `${state.offset}, at ${second}`);
  parts.width.input.value = String(state.dim);
  parts.base.input.value = state.base;
  parts.product.show(view.product, number(view.product));
  parts.binary.show(binary(state.position));
  parts.distance.show(view.distance, number(view.distance));
  parts.relation.textContent = relationText(state);
}

// ---------------------------------------------------------------------------------------- mounting

const HINT = "Move the position and watch the angle between the two hands of each dial.";

function build(prefix) {
  const scene = svg("g");
  const picture = drawing(
    prefix,
    "One clock hand for each pair, over the bits of the position",
    [0, 0, COLUMNS * CELL.width, 2 * CELL.height],
    scene,
  );
  const sliders = {
    position: slider(prefix, "position", ["Position"], POSITION),
    offset: slider(prefix, "offset", ["Second position, further on by"], OFFSET),
  };
  const width = select(prefix, "width", ["Width"], WIDTHS.map((dim) => [dim, dim]));
  const base = select(prefix, "base", ["Base"], BASES);
  const product = reading("product", "Product of the two rows");
  const bits = fact("binary", "Position in binary");
  const distance = fact("distance", "Distance of the rows");
  const reset = button("reset", "Reset");
  const [relation, change] = ["relation", "change"].map((role) => html("p", { "data-role": role }));
  const live = voice();
  const key = "Dashed: the second position. Twelve o\u2019clock is sine 0, cosine 1.";
  const figure = frame("Interactive figure: the hands of a position", {
    picture: [picture, html("p", { class: "key" }, key)],
    panel: [
      html("div", { class: "sliders series-1" }, sliders.position.row),
      html("div", { class: "sliders series-2" }, sliders.offset.row),
      product.row,
      html("dl", {}, bits.row, distance.row),
      width.row,
      base.row,
      html("div", { class: "buttons" }, reset),
    ],
    words: [relation, change],
    live: live.node,
  });
  return {
    figure, scene, sliders, width, base, product, binary: bits, distance, reset, relation,
    change, live, dials: [],
  };
}

/** Puts the figure into `root`. `options.state` replaces parts of the initial state. */
export function mount(root, options = {}) {
  const initial = { ...INITIAL, ...options.state };
  const parts = build(newPrefix("sinusoidal"));
  let state = initial;
  let before = initial; // what the sentence on the last movement compares
  let moving = null;

  function show(next, words) {
    state = next;
    draw(parts, state, compute(state));
    parts.change.textContent = words;
  }

  function move(next, words) {
    show(next, words);
    parts.live.say(() => `${parts.relation.textContent} ${parts.change.textContent}`);
  }

  function begin(key, fresh = false) {
    if (fresh || moving !== key) [before, moving] = [state, key];
  }

  for (const [key, { input }] of Object.entries(parts.sliders)) {
    input.addEventListener("pointerdown", () => begin(key, true));
    input.addEventListener("keydown", () => begin(key, true));
    input.addEventListener("input", () => {
      begin(key);
      const next = { ...state, [key]: Number(input.value) };
      move(next, changeText(before, next, key) || HINT);
    });
  }
  parts.width.input.addEventListener("change", () => {
    begin(null, true);
    const dim = Number(parts.width.input.value);
    move({ ...state, dim }, `Width ${dim}: ${dim / 2} hands, two coordinates each.`);
  });
  parts.base.input.addEventListener("change", () => {
    begin(null, true);
    const next = { ...state, base: parts.base.input.value };
    const speeds = compute(next).hands.map(({ frequency }) => number(frequency, 4)).join(", ");
    move(next, `The hands now turn by ${speeds} radians per token.`);
  });
  parts.reset.addEventListener("click", () => {
    begin(null, true);
    move(initial, HINT);
  });

  show(state, HINT);
  root.replaceChildren(parts.figure);
}
