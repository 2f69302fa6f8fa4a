"use strict";
// What all parts of the page share: its data, elements, and times with their units. Names in the data are those of strangers:
// they become text and nothing else, so nothing here writes HTML.

const data = JSON.parse(document.getElementById("data").textContent);
const svgSpace = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);

/** An element with attributes and children; a child that is a string is text. */
function element(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** The same, of SVG. */
function shape(name, attributes = {}, ...children) {
  return fill(document.createElementNS(svgSpace, name), attributes, children);
}

function fill(it, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) it.setAttribute(key, value);
  it.append(...children);
  return it;
}

/** Nanoseconds with a unit and three digits, as dptrace prints them. */
function time(nanos) {
  if (nanos < 1000) return `${Math.round(nanos)} ns`;
  const [value, unit] = nanos < 999500 ? [nanos / 1e3, "us"] : nanos < 999500000 ? [nanos / 1e6, "ms"] : [nanos / 1e9, "s"];
  return `${value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0)} ${unit}`;
}

/** A share of 0 to 1 in percent, as dptrace prints it: only nothing is 0%, and only all is 100%. */
function percent(share, digits) {
  const step = 10 ** -digits;
  if (share > 0 && 100 * share <= step / 2) return `<${step.toFixed(digits)}%`;
  if (share < 1 && 100 * share >= 100 - step / 2) return `>${(100 - step).toFixed(digits)}%`;
  return `${(100 * share).toFixed(digits)}%`;
}

/** A moment of a chart, after the first record, with as many digits as moments so close need. */
function moment(at, step) {
  const nanos = at + data.offset;
  if (nanos === 0) return "0";
  const [size, unit] = data.span >= 2e9 ? [1e9, "s"] : data.span >= 2e6 ? [1e6, "ms"] : [1e3, "us"];
  const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / size) - 1e-9)));
  return `${(nanos / size).toFixed(digits)} ${unit}`;
}

/** 1, 2 or 5 times a power of ten: the smallest that makes no more than `most` steps of a length. */
function niceStep(length, most) {
  const least = length / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= least * 0.999);
}

/** Latencies at which an axis with a logarithmic scale has lines: 1, 10, 100; between them 2 and 5, if there is room. */
function latencyTicks(low, high, room) {
  const factors = Math.log10(high / low) * 3 <= room ? [1, 2, 5] : [1];
  const ticks = [];
  for (let power = 1; power < high * 1.001; power *= 10) {
    for (const factor of factors) if (power * factor >= low * 0.999 && power * factor <= high * 1.001) ticks.push(power * factor);
  }
  return ticks;
}

/** A latency that is a round number. */
function roundTime(nanos) {
  const units = [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"]];
  const [size, unit] = units.find(([size]) => nanos >= size) || units[3];
  return `${+(nanos / size).toPrecision(3)} ${unit}`;
}

const stageName = (place) => data.stages[place].join(" → ");

/** The same without what both names begin with, up to an underscore. */
function shortStage(place) {
  const [from, to] = data.stages[place];
  let common = 0;
  while (common < from.length && from[common] === to[common]) common++;
  const start = from.lastIndexOf("_", common - 1) + 1;
  return `${from.slice(start)} → ${to.slice(start)}`;
}
