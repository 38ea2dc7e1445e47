// What stands beside the map: a row, its reasons, effect curves, profiles. Texts of the data are only ever set as text.
"use strict";

export const byId = (id) => document.getElementById(id);

export function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function drawn(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

export function number(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-3 || size >= 1e6) ? value.toExponential(2) : String(Number(value.toPrecision(4)));
}

const signed = (value) => (value > 0 ? "+" : "") + number(value);

// A bar from the middle: to the right what adds, to the left what takes away.
function bar(value, largest) {
  const svg = drawn("svg", { viewBox: "0 0 100 10", height: 11, preserveAspectRatio: "none", "aria-hidden": "true" });
  const long = (48 * Math.abs(value)) / (largest || 1);
  svg.append(
    drawn("line", { x1: 50, x2: 50, y1: 0, y2: 10, class: "axis" }),
    drawn("rect", { x: value < 0 ? 50 - long : 50, y: 1, width: long, height: 8, class: value < 0 ? "down" : "up" }));
  const cell = element("td", undefined, { class: "bar" });
  cell.append(svg);
  return cell;
}

function line(table, first, ...cells) {
  const row = table.insertRow(), head = element("th", undefined, { scope: "row" });
  head.append(first);
  row.append(head, ...cells);
  return row;
}

function picture(row) {
  return element("img", undefined, { class: "picture", src: `image?row=${row}`, alt: "" });
}

export function nameButton(name, row, choose) {
  const made = element("button", name, { class: "name", type: "button" });
  made.addEventListener("click", () => choose(row));
  return made;
}

export function rowPanel(found) {
  const table = element("table");
  for (const [name, value] of found.values) line(table, name, element("td", value));
  return found.image ? [picture(found.row), table] : [table];
}

export function tipPanel(found) {
  const few = { ...found, values: found.values.slice(0, 9) };
  return [element("strong", found.name), ...rowPanel(few)];
}

export function whyPanel(found, images, choose, ask) {
  const of = found.meaning === "prediction" ? "" : ` of ${found.output}`, table = element("table");
  const title = element("h3", `Why: ${found.meaning}${of} ${number(found.value)}`);
  const largest = Math.max(...found.pushes.map((each) => Math.abs(each.push)), Math.abs(found.rest), 1e-300);
  line(table, "begins at", element("td"), element("td", number(found.center), { class: "number" }));
  for (const { row, name, push } of found.pushes) {
    const head = element("span");
    if (row !== null && images) head.append(picture(row));
    head.append(row === null ? element("span", name) : nameButton(name, row, choose));
    line(table, head, bar(push, largest), element("td", signed(push), { class: "number" }));
  }
  if (found.n_rest) {
    line(table, `${found.n_rest} others`, bar(found.rest, largest), element("td", signed(found.rest), { class: "number" }));
  }
  line(table, "sum", element("td"), element("td", number(found.value), { class: "number" })).className = "strong";
  const parts = [title];
  if (found.outputs.length > 1) {
    const label = element("label", "Reasons for "), select = element("select");
    for (const output of found.outputs) select.append(element("option", output, { value: output }));
    select.value = found.output;
    select.addEventListener("change", () => ask(select.value));
    label.append(select);
    parts.push(label);
  }
  parts.push(table);
  if (found.doubt !== null) parts.push(element("p", `Doubt: ${number(found.doubt)}`, { class: "soft" }));
  if (found.columns.length && !images) {
    const columns = element("table"), most = Math.max(...found.columns.map((each) => Math.abs(each.effect)), 1e-300);
    for (const { name, slope, effect } of found.columns) {
      const a_unit = slope === null ? "" : `${signed(slope)} a unit`;
      line(columns, name, bar(effect, most), element("td", a_unit, { class: "number" }));
    }
    parts.push(element("h3", "Change with one standard deviation of each column"), columns);
  }
  return parts;
}

// ---- effect curves

function curve({ name, kind, x, labels, effect, lower, upper, place, at }) {
  const w = 220, h = 64, svg = drawn("svg", { viewBox: `0 0 ${w} ${h + 14}`, role: "img" });
  const low = Math.min(...lower), high = Math.max(...upper), left = Math.min(...x), right = Math.max(...x);
  const px = (value) => ((value - left) / (right - left || 1)) * (w - 8) + 4;
  const py = (value) => h - 4 - ((value - low) / (high - low || 1)) * (h - 8);
  const path = (ys) => x.map((value, k) => `${px(value).toFixed(1)},${py(ys[k]).toFixed(1)}`);
  svg.append(drawn("title", {}, `Effect of ${name}`));
  if (low < 0 && high > 0) svg.append(drawn("line", { x1: 0, x2: w, y1: py(0), y2: py(0), class: "axis" }));
  svg.append(
    drawn("polygon", { points: [...path(upper), ...path(lower).reverse()].join(" "), class: "band" }),
    drawn("polyline", { points: path(effect).join(" "), class: "curve" }));
  if (place !== null && at !== null) {
    svg.append(drawn("circle", { cx: px(Math.min(Math.max(place, left), right)), cy: py(at), r: 4, class: "here" }));
  }
  svg.append(
    drawn("text", { x: 2, y: h + 11 }, labels[0]),
    drawn("text", { x: w - 2, y: h + 11, "text-anchor": "end" }, labels[labels.length - 1]));
  const label = at === null ? name : `${name}: ${signed(at)} here`;
  const made = element("div");
  made.append(element("h3", kind === "category" ? `${label} (levels in the order of the curve)` : label), svg);
  return made;
}

export function effectsPanel(found) {
  if (!found.curves.length) return found.words ? [element("p", found.words, { class: "soft" })] : [];
  const output = found.curves[0].output;
  return [
    element("h3", `Effects of the columns on the ${output}`),
    element("p", "Accumulated local effects with the model's band; the dot is this row.", { class: "soft" }),
    ...found.curves.map(curve)];
}

// ---- concepts

export function profilePanel(found) {
  const table = element("table"), most = Math.max(...found.mean.map(Math.abs), 1e-300);
  found.groups.forEach((group, k) => {
    const p = found.p_value[k], star = found.significant.includes(group) ? " *" : "";
    const row = line(
      table, group, bar(found.mean[k], most), element("td", `p ${number(p)}${star}`, { class: "number" }));
    if (star) row.className = "strong";
  });
  const told =
    `A linear machine tells ${found.n_examples} examples from ${found.n_others} others in the representation: ` +
    `its balanced accuracy on rows left out is ${number(100 * found.accuracy)} %. Directions from resampled examples have ` +
    `a mean cosine of ${number(found.stability)} with it.` + (found.drawn ? " Both sides were drawn from more rows." : "");
  const means =
    `Influence of the concept by ${found.by}, beside the mean of all rows; p against ${found.n_random} random concepts ` +
    "of the same size, for all groups and concepts at once. * is below .05.";
  return [element("h3", found.name), element("p", told, { class: "soft" }), table, element("p", means, { class: "soft" })];
}
