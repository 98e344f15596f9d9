// Two arrows in one plane: q at position m and k at position n, each turned by its position times
// theta. Move one and their inner product changes; move both alike and it does not.
//
//   controls -> state -> compute(state) -> draw(view)
//
// Everything up to `compute` and the sentences is pure, so a test can hold it to NumPy's values.
// Angles are radians, counterclockwise; positions are tokens; lengths are in units of the axes.

import {
  DEGREE, MINUS, button, checkbox, clamp, draggable, drawing, fact, frame, html, keyTarget, math,
  newPrefix, number, pointAt, reading, set, slider, svg, voice, whole,
} from "./_kit.js";

const EPSILON = 1e-9; // far above rounding at these sizes, far below one position's turn

export const POSITION = { min: 0, max: 72, step: 1, page: 6 }; // 72 turns of 5 degrees: once around
export const LENGTH = { min: 0, max: 1.5, step: 0.1 };

export const INITIAL = Object.freeze({
  m: 4, // position of q
  n: 10, // position of k
  theta: 5 * DEGREE, // turn per position
  qAngle: 20 * DEGREE, // direction before turning: what the token says
  kAngle: 50 * DEGREE,
  qLength: 1.2,
  kLength: 1.0,
  together: false, // the lock: both positions move by the same amount
});

// ---------------------------------------------------------------------------------------- compute

const polar = (length, angle) => [length * Math.cos(angle), length * Math.sin(angle)];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1];
const cross = (a, b) => a[0] * b[1] - a[1] * b[0];

export function rotate([x, y], angle) {
  const [c, s] = [Math.cos(angle), Math.sin(angle)];
  return [x * c - y * s, x * s + y * c];
}

function relationOf(q, k, state) {
  if (state.qLength === 0 && state.kLength === 0) return "both-zero";
  if (state.qLength === 0) return "q-zero";
  if (state.kLength === 0) return "k-zero";
  const scale = state.qLength * state.kLength;
  const [cosine, sine] = [dot(q, k) / scale, cross(q, k) / scale];
  if (Math.abs(cosine) < EPSILON) return "perpendicular";
  if (Math.abs(sine) < EPSILON) return cosine > 0 ? "same" : "opposite";
  return cosine > 0 ? "acute" : "obtuse";
}

/** Everything the picture shows. `relative` is the other side of the identity: q · R(n − m) k. */
export function compute(state) {
  const qBefore = polar(state.qLength, state.qAngle);
  const kBefore = polar(state.kLength, state.kAngle);
  const q = rotate(qBefore, state.m * state.theta);
  const k = rotate(kBefore, state.n * state.theta);
  const offset = state.n - state.m;
  const relation = relationOf(q, k, state);
  const signedAngle = relation.endsWith("zero") ? null : Math.atan2(cross(q, k), dot(q, k));
  return {
    qBefore,
    kBefore,
    q,
    k,
    qTurn: state.m * state.theta,
    kTurn: state.n * state.theta,
    offset,
    offsetTurn: offset * state.theta,
    innerProduct: dot(q, k),
    relative: dot(qBefore, rotate(kBefore, offset * state.theta)),
    signedAngle, // from q to k; null when an arrow has no direction
    angleBetween: signedAngle === null ? null : Math.abs(signedAngle),
    reach: state.qLength * state.kLength, // the largest inner product of these lengths
    relation,
  };
}

/** Moves "q" or "k" to a position; with the lock on, the other follows, and both stop together. */
export function moveTo(state, arrow, position) {
  const key = arrow === "q" ? "m" : "n";
  const wanted = Math.round(position) - state[key];
  if (!state.together) return { ...state, [key]: clamp(state[key] + wanted, POSITION) };
  const shift = clamp(wanted, {
    min: POSITION.min - Math.min(state.m, state.n),
    max: POSITION.max - Math.max(state.m, state.n),
  });
  return { ...state, m: state.m + shift, n: state.n + shift };
}

// ------------------------------------------------------------------------------------------ words

const degrees = (angle) => `${whole(angle / DEGREE)}°`;

/** One sentence on how the arrows stand to each other, the special cases included. */
export function relationText(view) {
  switch (view.relation) {
    case "both-zero":
      return "Both arrows have length 0: no directions, no angle, and the inner product is 0.";
    case "q-zero":
      return "q has length 0: it has no direction, and the inner product is 0 wherever k points.";
    case "k-zero":
      return "k has length 0: it has no direction, and the inner product is 0 wherever q points.";
    case "perpendicular":
      return "The arrows are perpendicular: the inner product is 0.";
    case "same":
      return "The arrows point the same way: no larger inner product at these lengths.";
    case "opposite":
      return "The arrows point in opposite directions: no lower inner product at these lengths.";
    case "acute":
      return "Less than a right angle between the arrows: the inner product is positive.";
    default:
      return "More than a right angle between the arrows: the inner product is negative.";
  }
}

const plural = (count) => `${whole(count)} ${Math.abs(count) === 1 ? "position" : "positions"}`;

function fromTo(before, after) {
  const [a, b] = [number(before.innerProduct), number(after.innerProduct)];
  return a === b ? `the inner product is ${b}, as before` : `the inner product from ${a} to ${b}`;
}

/** One or two sentences on what the reader's last movement did. */
export function changeText(before, after, arrow) {
  const [old, now] = [compute(before), compute(after)];
  const key = arrow === "q" ? "m" : "n";
  const shift = after[key] - before[key];
  if (shift === 0) return "";
  if (after.together) {
    return (
      `Both moved by ${plural(shift)} (${degrees(shift * after.theta)}). ` +
      `The offset is still ${whole(now.offset)}, and the inner product is still ` +
      `${number(now.innerProduct)}.`
    );
  }
  return (
    `Only ${arrow} moved, from position ${before[key]} to ${after[key]}. ` +
    `The offset went from ${whole(old.offset)} to ${whole(now.offset)}, ${fromTo(old, now)}.`
  );
}

// -------------------------------------------------------------------------------------- drawing

const HEAD = "M 0 0 L -18 8.5 L -13 0 L -18 -8.5 Z"; // tip at the origin, pointing right
const TONE = { q: "series-1", k: "series-2" };
const DISC = "M -5 0 a 5 5 0 1 0 10 0 a 5 5 0 1 0 -10 0"; // an arrow of length 0
const UNIT = 112; // drawing units per unit of length
const DIAL = 182; // radius of the ring of ticks
const AXIS = 168; // half the length of an axis
const HALF = 190; // half the width of the drawing

const point = (radius, angle) => [radius * Math.cos(angle), -radius * Math.sin(angle)]; // y is down
const xy = (radius, angle) => point(radius, angle).map((v) => v.toFixed(2)).join(" ");

function arcPath(radius, from, to) {
  const pieces = Math.max(1, Math.ceil(Math.abs(to - from) / (3 * DEGREE)));
  const steps = Array.from({ length: pieces + 1 }, (_, i) => from + ((to - from) * i) / pieces);
  return "M " + steps.map((angle) => xy(radius, angle)).join(" L ");
}

// The turn of one arrow: an arc with a small head, left out while there is nothing to show.
function turnPath(radius, from, turn) {
  if (Math.abs(turn) < EPSILON) return "";
  const tip = from + turn;
  const back = tip - Math.sign(turn) * Math.min(Math.abs(turn), 7 / radius);
  const head = `M ${xy(radius - 5, back)} L ${xy(radius, tip)} L ${xy(radius + 5, back)}`;
  return `${arcPath(radius, from, tip)} ${head}`;
}

function dial(theta) {
  const ticks = svg("g", { class: "ticks", "aria-hidden": "true" });
  const count = Math.round((2 * Math.PI) / theta);
  for (let i = 0; i < count; i += 1) {
    const long = i % POSITION.page === 0;
    const path = `M ${xy(DIAL - (long ? 9 : 4), i * theta)} L ${xy(DIAL, i * theta)}`;
    ticks.append(svg("path", { d: path, class: long ? "tick long" : "tick" }));
  }
  ticks.append(
    svg("path", { class: "axis", d: `M ${-AXIS} 0 H ${AXIS} M 0 ${-AXIS} V ${AXIS}` }),
    svg("circle", { class: "unit", r: UNIT }),
  );
  return ticks;
}

function arrowParts(name) {
  const shaft = svg("path", { class: "shaft" });
  const grip = svg("path", { class: "grip" });
  const head = svg("path", { class: "head" });
  const halo = svg("circle", { class: "halo", r: 16 });
  const hit = svg("circle", { class: "hit", r: 27 });
  const label = svg("text", { class: "name", "aria-hidden": "true" }, name);
  const tip = svg(
    "g",
    {
      class: `arrow arrow-${name} ${TONE[name]}`,
      role: "slider",
      tabindex: "0",
      "data-tip": name,
      "aria-label": name === "q" ? "Arrow q, position m" : "Arrow k, position n",
      "aria-valuemin": POSITION.min,
      "aria-valuemax": POSITION.max,
    },
    grip,
    halo,
    shaft,
    head,
    hit,
    label,
  );
  const ghost = svg("path", { class: `ghost ${TONE[name]}` });
  const turn = svg("path", { class: `turn ${TONE[name]}` });
  return { tip, shaft, grip, head, halo, hit, label, ghost, turn };
}

function drawArrow(parts, { length, angle, from, turn, position, radius }) {
  const reach = length * UNIT;
  const size = Math.min(1, reach / 26); // a short arrow has a small head
  const rotation = `rotate(${(-angle / DEGREE).toFixed(4)})`;
  const along = `translate(${reach.toFixed(2)} 0)`;
  set(parts.shaft, { d: `M 0 0 H ${(reach - 12 * size).toFixed(2)}`, transform: rotation });
  set(parts.grip, { d: `M 0 0 H ${reach.toFixed(2)}`, transform: rotation });
  const head = reach === 0 ? DISC : HEAD;
  const scale = reach === 0 ? "" : ` scale(${size.toFixed(3)})`;
  set(parts.head, { d: head, transform: `${rotation} ${along}${scale}` });
  for (const part of [parts.halo, parts.hit]) {
    set(part, { transform: `${rotation} ${along} translate(${(-6 * size).toFixed(2)} 0)` });
  }
  const [x, y] = point(reach + 21, angle);
  set(parts.label, { x: x.toFixed(2), y: (y + 5.5).toFixed(2) });
  set(parts.ghost, { d: reach === 0 ? "" : `M 0 0 L ${xy(reach, from)}` });
  set(parts.turn, { d: reach === 0 ? "" : turnPath(radius, from, turn) });
  set(parts.tip, {
    "aria-valuenow": position,
    "aria-valuetext": `position ${position}, turned by ${degrees(turn)}`,
  });
}

/** Brings the page's nodes into line with one state and its view. */
export function draw(parts, state, view) {
  drawArrow(parts.q, {
    length: state.qLength,
    angle: state.qAngle + view.qTurn,
    from: state.qAngle,
    turn: view.qTurn,
    position: state.m,
    radius: 58,
  });
  drawArrow(parts.k, {
    length: state.kLength,
    angle: state.kAngle + view.kTurn,
    from: state.kAngle,
    turn: view.kTurn,
    position: state.n,
    radius: 76,
  });
  const start = state.qAngle + view.qTurn;
  const open = view.signedAngle !== null && view.angleBetween > EPSILON;
  set(parts.wedge, { d: open ? `${arcPath(36, start, start + view.signedAngle)} L 0 0 Z` : "" });

  const product = number(view.innerProduct);
  parts.product.show(view.innerProduct, product);
  parts.offset.show(view.offset, `${whole(view.offset)} (${degrees(view.offsetTurn)})`);
  const between = view.angleBetween === null ? "none" : degrees(view.angleBetween);
  parts.between.show(view.angleBetween, between);

  const full = LENGTH.max ** 2; // the bar's half width
  const share = (value) => `${(50 * value) / full}%`;
  const low = Math.min(0, view.innerProduct);
  Object.assign(parts.fill.style, {
    left: `calc(50% + ${share(low)})`,
    width: share(Math.abs(view.innerProduct)),
  });
  parts.fill.dataset.sign = product === "0.00" ? "zero" : view.innerProduct < 0 ? "minus" : "plus";
  Object.assign(parts.reach.style, {
    left: `calc(50% - ${share(view.reach)})`,
    width: share(2 * view.reach),
  });

  const { m, qLength, n, kLength } = parts.sliders;
  m.show(state.m, `${state.m}, turned ${degrees(view.qTurn)}`);
  n.show(state.n, `${state.n}, turned ${degrees(view.kTurn)}`);
  qLength.show(state.qLength, number(state.qLength, 1));
  kLength.show(state.kLength, number(state.kLength, 1));
  parts.lock.input.checked = state.together;
  parts.relation.textContent = relationText(view);
}

// ---------------------------------------------------------------------------------------- mounting

function build(prefix, theta) {
  const q = arrowParts("q");
  const k = arrowParts("k");
  const wedge = svg("path", { class: "wedge" });
  const picture = drawing(
    prefix,
    "Arrows q and k in the plane, each turned by its position",
    [-HALF, -HALF, 2 * HALF, 2 * HALF],
    dial(theta),
    wedge,
    q.ghost,
    k.ghost,
    q.turn,
    k.turn,
    q.tip,
    k.tip,
  );
  const sliders = {
    m: slider(prefix, "m", ["Position ", math("m"), " of ", math("q")], POSITION),
    qLength: slider(prefix, "qLength", ["Length of ", math("q")], LENGTH),
    n: slider(prefix, "n", ["Position ", math("n"), " of ", math("k")], POSITION),
    kLength: slider(prefix, "kLength", ["Length of ", math("k")], LENGTH),
  };
  const product = reading("product", "Inner product of the turned ", math("q"), " and ", math("k"));
  const offset = fact("offset", "Offset ", math("n"), ` ${MINUS} `, math("m"));
  const between = fact("angle", "Angle between");
  const fill = html("span", { class: "fill" });
  const reach = html("span", { class: "reach" });
  const zero = html("span", { class: "zero" });
  const lock = checkbox(prefix, "lock", ["Turn both together"]);
  const reset = button("reset", "Reset");
  lock.row.append(reset);
  const relation = html("p", { "data-role": "relation" });
  const change = html("p", { "data-role": "change" });
  const live = voice();
  const key = `Dashed: before turning. One tick: one position, θ\u00a0=\u00a0${degrees(theta)}.`;
  const figure = frame("Interactive figure: turn q, k, or both", {
    picture: [picture, html("p", { class: "key" }, key)],
    panel: [
      product.row,
      html("div", { class: "bar", "aria-hidden": "true" }, reach, fill, zero),
      html("dl", {}, offset.row, between.row),
      lock.row,
      html("div", { class: `sliders ${TONE.q}` }, sliders.m.row, sliders.qLength.row),
      html("div", { class: `sliders ${TONE.k}` }, sliders.n.row, sliders.kLength.row),
    ],
    words: [relation, change],
    live: live.node,
  });
  return {
    figure, picture, q, k, wedge, product, fill, reach, offset, between,
    sliders, lock, reset, relation, change, live,
  };
}

const HINT =
  "Drag an arrow, use its arrow keys, or move a slider: first one arrow alone, then both together.";

/** Puts the figure into `root`. `options.state` replaces parts of the initial state. */
export function mount(root, options = {}) {
  const initial = { ...INITIAL, ...options.state };
  const parts = build(newPrefix("rope"), initial.theta);
  let state = initial;
  let gesture = { name: null, before: state }; // what the sentence on the last movement compares

  function speak() {
    parts.live.say(() => {
      const words = [parts.relation.textContent, parts.change.textContent];
      return `Inner product ${parts.product.output.textContent}. ${words.join(" ")}`;
    });
  }

  function show(next, words) {
    state = next;
    draw(parts, state, compute(state));
    parts.change.textContent = words;
  }

  function begin(name, fresh = false) {
    if (fresh || gesture.name !== name) gesture = { name, before: state };
  }

  function turnTo(arrow, position) {
    begin(arrow);
    const next = moveTo(state, arrow, position);
    const stopped = next[arrow === "q" ? "m" : "n"] !== Math.round(position);
    const ends = `Positions in this figure run from ${POSITION.min} to ${POSITION.max}.`;
    const words = [changeText(gesture.before, next, arrow), stopped ? ends : ""];
    show(next, words.filter(Boolean).join(" ") || HINT);
    speak();
  }

  function stretch(key, length) {
    begin(key);
    const next = { ...state, [key]: clamp(length, LENGTH) };
    const [old, now] = [compute(gesture.before), compute(next)];
    const sizes = `from ${number(gesture.before[key], 1)} to ${number(next[key], 1)}`;
    show(next, `The length of ${key[0]} went ${sizes}, ${fromTo(old, now)}.`);
    speak();
  }

  for (const arrow of ["q", "k"]) {
    const { tip } = parts[arrow];
    const key = arrow === "q" ? "m" : "n";

    const angleOf = (event) => {
      const [x, y] = pointAt(parts.picture, event);
      return Math.hypot(x, y) < 4 ? null : Math.atan2(-y, x); // no direction at the very centre
    };
    let drag = null; // { angle, turned, from }

    draggable(tip, {
      start(event) {
        drag = { angle: angleOf(event), turned: 0, from: state[key] };
        begin(arrow, true);
      },
      move(event) {
        const angle = angleOf(event);
        if (angle !== null && drag.angle !== null) {
          const step = angle - drag.angle; // the short way round, so that a full turn adds up
          drag.turned += Math.atan2(Math.sin(step), Math.cos(step));
          turnTo(arrow, drag.from + drag.turned / state.theta);
        }
        if (angle !== null) drag.angle = angle;
      },
    });

    tip.addEventListener("keydown", (event) => {
      const position = keyTarget(event, state[key], POSITION);
      if (position !== undefined) turnTo(arrow, position);
    });
  }

  for (const [key, { input }] of Object.entries(parts.sliders)) {
    const arrow = { m: "q", n: "k" }[key];
    input.addEventListener("pointerdown", () => begin(arrow ?? key, true));
    input.addEventListener("input", () => {
      const value = Number(input.value);
      if (arrow) turnTo(arrow, value);
      else stretch(key, value);
    });
  }

  parts.lock.input.addEventListener("change", () => {
    const together = parts.lock.input.checked;
    const words = together
      ? "Locked: both arrows now turn by the same angle, so the offset stays as it is."
      : "Unlocked: each arrow turns alone.";
    show({ ...state, together }, words);
    begin(null, true);
    speak();
  });

  parts.reset.addEventListener("click", () => {
    show(initial, HINT);
    begin(null, true);
    speak();
  });

  show(state, HINT);
  root.replaceChildren(parts.figure);
}
