// A table of eight rows and one text, padded or not: which row each word gets, counted in three ways.
//
//   controls -> state -> compute(state) -> draw(view)
//
// Positions and rows are counted from 0. `compute` is pure, so a test can hold it to NumPy's values.

import {
  button, checkbox, clamp, drawing, fact, frame, html, newPrefix, set, slider, svg, voice,
} from "./_kit.js";

export const ROWS = 8; // the table ends at row 7
export const PADDING_ID = 1; // RoBERTa's number for padding, and so its row
export const PHRASE = Object.freeze([
  "Pour", "her", "some", "chocolate", "oat", "milk", "into", "this", "cup",
]);

const WORDS = { min: 1, max: PHRASE.length, step: 1 };
const PADDING = { min: 0, max: 3, step: 1 };
const OFFSET = { min: 0, max: 2, step: 1 };
const COLUMNS = [
  ["slots", "by slot", "by slot"],
  ["mask", "by mask", "by mask"],
  ["roberta", "RoBERTa", "in RoBERTa style"],
];

export const INITIAL = Object.freeze({
  words: 6,
  padding: 2,
  left: true, // padding before the words, not after them
  offset: 0, // the row of the first position, for the first two ways of counting
});

// ---------------------------------------------------------------------------------------- compute

/** Which row every slot reads; null is a row that the table does not have. */
export function compute(state) {
  const { padding, offset } = state;
  const words = PHRASE.slice(0, state.words).map((word) => ({ word, real: true }));
  const filler = Array.from({ length: padding }, () => ({ word: "padding", real: false }));
  const slots = state.left ? [...filler, ...words] : [...words, ...filler];

  let before = 0; // real words before this slot
  const wanted = slots.map(({ real }, slot) => {
    const rows = {
      slots: offset + slot,
      mask: real ? offset + before : 0, // nobody attends to padding: any row will do
      roberta: real ? PADDING_ID + 1 + before : PADDING_ID,
    };
    before += real ? 1 : 0;
    return rows;
  });

  const columns = {};
  for (const [name] of COLUMNS) {
    const rows = wanted.map((row) => (row[name] < ROWS ? row[name] : null));
    const ofWords = rows.filter((_, slot) => slots[slot].real);
    columns[name] = {
      rows,
      first: ofWords[0],
      last: ofWords.at(-1),
      missing: ofWords.filter((row) => row === null).length, // words, not padding
    };
  }
  return { tokens: slots, columns, shift: state.left ? padding : 0 };
}

// ------------------------------------------------------------------------------------------ words

const plural = (count, thing) => `${count} ${thing}${count === 1 ? "" : "s"}`;

/** One or two sentences on how the three ways of counting stand to each other. */
export function relationText(state, view) {
  const { columns, shift } = view;
  const short = COLUMNS.filter(([name]) => columns[name].missing > 0);
  if (short.length > 0) {
    const each = short.map(
      ([name, , words]) => `${words} ${plural(columns[name].missing, "word")}`,
    );
    return `The table ends at row ${ROWS - 1}. Without a row: ${each.join(", ")}.`;
  }
  if (shift > 0) {
    return (
      `Padding on the left: counted by slot, every word stands ${plural(shift, "row")} further ` +
      "down than without padding. By mask and in RoBERTa style, none has moved."
    );
  }
  if (state.padding > 0) return "Padding on the right: counting by slot or by mask, words agree.";
  return "No padding: counting by slot or by mask comes to the same.";
}

/** What the reader's last movement did. */
export function changeText(key, state) {
  switch (key) {
    case "words":
      return `The text now has ${plural(state.words, "word")}.`;
    case "padding":
      return `Now ${plural(state.padding, "slot")} of padding.`;
    case "offset":
      return state.offset === 2
        ? "Offset 2, as in OPT: by mask, each word now has the row that RoBERTa gives it."
        : `Position 0 now reads row ${state.offset}. RoBERTa's count has its start built in.`;
    default:
      return `Padding now stands on the ${state.left ? "left" : "right"}.`;
  }
}

const rowText = (row) => (row === null ? "none" : `row ${row}`);

function endsText(state, column) {
  const [first, last] = [PHRASE[0], PHRASE[state.words - 1]];
  if (state.words === 1) return `${first}: ${rowText(column.first)}`;
  return `${first}: ${rowText(column.first)}, ${last}: ${rowText(column.last)}`;
}

// ---------------------------------------------------------------------------------------- drawing

const LINE = 26; // height of one slot
const TOP = 30; // below the names of the columns
const MOST = PHRASE.length + PADDING.max;
const LEFT = [112, 210, 308]; // where the columns begin
const WIDE = 88;

function build(prefix) {
  const parts = { lines: [] };
  const names = COLUMNS.map(([, name], i) =>
    svg("text", { x: LEFT[i] + WIDE / 2, y: 18, "text-anchor": "middle" }, name),
  );
  const nodes = [];
  for (let slot = 0; slot < MOST; slot += 1) {
    const y = TOP + slot * LINE;
    const word = svg("text", { x: 100, y: y + 18, "text-anchor": "end" });
    const cells = LEFT.map((x) => {
      const box = svg("rect", { x, y: y + 1, width: WIDE, height: LINE - 2, rx: 3 });
      const text = svg("text", { x: x + WIDE / 2, y: y + 18, "text-anchor": "middle" });
      return { box, text };
    });
    const line = svg("g", {}, word, ...cells.flatMap(({ box, text }) => [box, text]));
    nodes.push(line);
    parts.lines.push({ line, word, cells });
  }
  parts.picture = drawing(
    prefix,
    "Each slot of the text, and the row of the table it reads under three ways of counting",
    [0, 0, 400, TOP + MOST * LINE],
    ...names,
    ...nodes,
  );
  return parts;
}

function drawCell({ box, text }, row, real, name) {
  if (row === null) {
    set(box, { class: real ? "ghost series-2" : "ghost series-3", style: "" });
    set(text, { class: real ? "tone series-2" : "small" });
    text.textContent = real ? "no row" : "none";
  } else if (real) {
    set(box, { class: "cell series-1", style: `--share: ${(0.45 * (row + 1)) / ROWS}` });
    set(text, { class: "" });
    text.textContent = row;
  } else {
    set(box, { class: "grid", style: "" });
    set(text, { class: "small" });
    text.textContent = row;
  }
  set(text, { "data-column": name, "data-row": row === null ? "none" : row });
}

/** Brings the page's nodes into line with one state and its view. */
export function draw(parts, state, view) {
  parts.lines.forEach(({ line, word, cells }, slot) => {
    const token = view.tokens[slot];
    line.style.display = token ? "" : "none";
    word.textContent = token ? token.word : "";
    set(word, { class: token && token.real ? "" : "small" });
    cells.forEach((cell, i) => {
      const name = COLUMNS[i][0];
      if (token) drawCell(cell, view.columns[name].rows[slot], token.real, name);
    });
  });
  for (const [name] of COLUMNS) {
    const column = view.columns[name];
    parts.facts[name].show(column.missing, endsText(state, column));
  }
  const { words, padding, offset } = parts.sliders;
  words.show(state.words);
  padding.show(state.padding);
  offset.show(state.offset);
  parts.left.input.checked = state.left;
  parts.relation.textContent = relationText(state, view);
}

// --------------------------------------------------------------------------------------- mounting

const HINT = "Add words until a column has no row for one, or move the padding to the right.";

/** Puts the figure into `root`. `options.state` replaces parts of the initial state. */
export function mount(root, options = {}) {
  const initial = { ...INITIAL, ...options.state };
  const prefix = newPrefix("learned");
  const sliders = {
    words: slider(prefix, "words", ["Words in the text"], WORDS),
    padding: slider(prefix, "padding", ["Slots of padding"], PADDING),
    offset: slider(prefix, "offset", ["Offset"], OFFSET),
  };
  const left = checkbox(prefix, "left", ["Padding on the left"]);
  const reset = button("reset", "Reset");
  left.row.append(reset);
  const facts = Object.fromEntries(
    COLUMNS.map(([name, words]) => [name, fact(name, words)]),
  );
  const [relation, change] = ["relation", "change"].map((role) => html("p", { "data-role": role }));
  const live = voice();
  const parts = { ...build(prefix), sliders, left, facts, relation };
  let state = initial;

  function show(next, words) {
    state = next;
    draw(parts, state, compute(state));
    change.textContent = words;
  }

  function move(next, words) {
    show(next, words);
    live.say(() => `${change.textContent} ${relation.textContent}`);
  }

  const ranges = { words: WORDS, padding: PADDING, offset: OFFSET };
  for (const [key, { input }] of Object.entries(sliders)) {
    input.addEventListener("input", () => {
      const next = { ...state, [key]: clamp(Math.round(Number(input.value)), ranges[key]) };
      move(next, changeText(key, next));
    });
  }
  left.input.addEventListener("change", () => {
    const next = { ...state, left: left.input.checked };
    move(next, changeText("left", next));
  });
  reset.addEventListener("click", () => move(initial, HINT));

  show(state, HINT);
  const key = `Rows 0 to ${ROWS - 1}. Stronger colour: later row.`;
  root.replaceChildren(
    frame("Interactive figure: which row each word reads", {
      picture: [parts.picture, html("p", { class: "key" }, key)],
      panel: [
        html("dl", {}, ...COLUMNS.map(([name]) => facts[name].row)),
        left.row,
        html(
          "div",
          { class: "sliders series-1" },
          sliders.words.row,
          sliders.padding.row,
          sliders.offset.row,
        ),
      ],
      words: [relation, change],
      live: live.node,
    }),
  );
}
