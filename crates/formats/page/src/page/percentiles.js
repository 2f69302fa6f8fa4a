// How long requests and their stages took: what all but one of 10, 100, 1,000 ... do not exceed, on a scale of nines.

const percentiles = (() => {
  const [chart, chosen, body, said] = ["curves", "curves-of", "stages-rows", "curves-said"].map(byId);
  if (!chart) return null;
  const [left, right, top, bottom] = [64, 16, 10, 42];
  const most = 8;
  const names = ["p50", "p90", "p99", "p99.9"];
  let shown = [];
  let scale = null;

  const options = data.groups.map((group, place) => ({ label: `all ${group.name}, ${group.whole.n} from ${group.first}`, group, place }));
  data.connections.forEach((connection, place) => {
    if (!connection.stages) return;
    const group = data.groups[connection.group];
    const excluded = connection.excluded ? ` (${connection.excluded})` : "";
    options.push({ label: `${connection.name ?? "no connection"}${excluded}, ${group.name}`, group: connection, place, connection: place });
  });
  const parts = [["All", options.filter((it) => it.connection === undefined)], ["Connections", options.filter((it) => it.connection !== undefined)]];
  for (const [label, within] of parts) {
    if (!within.length) continue;
    const group = element("optgroup", { label });
    for (const it of within) group.append(element("option", { value: options.indexOf(it) }, it.label));
    chosen.append(group);
  }

  /** The whole, then the stages that take the longest at the 99th percentile. */
  function lines(group) {
    const stages = group.stages.filter(([, it]) => it.curve).map(([place, it]) => ({ label: stageName(place), figures: it, place }));
    stages.sort((a, b) => b.figures.p[2] - a.figures.p[2]);
    const whole = { label: "whole request", figures: group.whole, place: null };
    return [whole, ...stages].filter((it) => it.figures.curve && it.figures.n > 0).slice(0, most);
  }

  function show(place) {
    const { group } = options[place];
    shown = lines(group);
    draw();
    body.replaceChildren();
    const colour = (stage) => shown.findIndex((it) => it.place === stage);
    for (const [stage, figures] of group.stages) row(stageName(stage), figures, colour(stage));
    row("whole request", group.whole, 0);
    const sum = group.stages.reduce((all, [, it]) => all + it.mean * it.n, 0);
    byId("stages-note").textContent = group.unfinished
      ? `${group.unfinished} had not ended with the trace: the stages count, the whole does not.` : "";
    [...body.rows].forEach((cells, n) => {
      const stage = group.stages[n];
      cells.cells[2].textContent = stage && sum > 0 ? percent(stage[1].mean * stage[1].n / sum, 1) : "";
    });
  }

  function row(label, figures, colour) {
    const head = element("td", { class: "name" });
    head.append(colour < 0 ? "" : key(colour), ` ${label}`);
    const numbers = [figures.n, "", ...[figures.mean, ...figures.p, figures.max].map((it) => (figures.n ? time(it) : "–"))];
    body.append(element("tr", {}, head, ...numbers.map((it) => element("td", {}, String(it)))));
  }

  /** The line of a curve, for its legend. */
  function key(n) {
    const stroke = shape("line", { x1: 0, y1: 5, x2: 22, y2: 5, class: `curve s${n}${n ? "" : " whole"}` });
    const svg = shape("svg", { width: 22, height: 10, class: "key", "aria-hidden": "true" }, stroke);
    return svg;
  }

  function draw() {
    const [width, height] = [Math.max(280, chart.parentElement.clientWidth), chart.parentElement.clientWidth < 600 ? 260 : 320];
    chart.setAttribute("viewBox", `0 0 ${width} ${height}`);
    chart.setAttribute("height", height);
    chart.replaceChildren();
    if (!shown.length) {
      chart.append(shape("text", { x: left, y: 40 }, "No request is complete: there is nothing to draw."));
      return;
    }
    const values = shown.flatMap((it) => [Math.max(1, it.figures.curve[0]), it.figures.max]);
    const low = Math.min(...values) / 1.1;
    const high = Math.max(...values) * 1.15;
    const nines = Math.max(2, ...shown.map((it) => Math.log10(it.figures.n)));
    const x = (n) => left + n / nines * (width - left - right);
    const y = (nanos) => top + (1 - Math.log(Math.max(low, nanos) / low) / Math.log(high / low)) * (height - top - bottom);
    scale = { nines, width, height, x };
    for (const tick of latencyTicks(low, high, (height - top - bottom) / 22)) {
      chart.append(shape("line", { x1: left, x2: width - right, y1: y(tick), y2: y(tick), class: "grid" }));
      chart.append(shape("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, roundTime(tick)));
    }
    const at = [["0", 0], ["p50", Math.log10(2)], ["p90", 1], ["p99", 2], ["p99.9", 3], ["p99.99", 4], ["p99.999", 5], ["p99.9999", 6]];
    for (const [label, n] of at) {
      if (n > nines + 1e-9) break;
      chart.append(shape("line", { x1: x(n), x2: x(n), y1: top, y2: height - bottom, class: "grid" }));
      if (n > 0) chart.append(shape("text", { x: x(n), y: height - bottom + 16, "text-anchor": n === nines ? "end" : "middle" }, label));
    }
    chart.append(shape("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, "this share of them did not take longer"));
    shown.forEach((it, n) => {
      const points = it.figures.curve.map((nanos, step) => [x(step / 10), y(nanos)]);
      points.push([x(Math.log10(Math.max(1, it.figures.n))), y(it.figures.max)]);
      const path = points.map(([px, py]) => `${px.toFixed(1)},${py.toFixed(1)}`).join(" ");
      chart.append(shape("polyline", { points: path, class: `curve s${n}${n ? "" : " whole"}` }, shape("title", {}, it.label)));
    });
    const cursor = shape("line", { x1: 0, x2: 0, y1: top, y2: height - bottom, class: "cursor", visibility: "hidden" });
    cursor.id = "curves-cursor";
    chart.append(cursor);
  }

  /** What the curves say at a number of nines. */
  function read(nines) {
    const part = 100 * (1 - 10 ** -nines);
    const values = shown.map((it) => {
      const last = Math.log10(Math.max(1, it.figures.n));
      const step = Math.min(Math.round(nines * 10), it.figures.curve.length - 1);
      return `${it.label} ${time(nines >= last ? it.figures.max : it.figures.curve[step])}`;
    });
    said.textContent = `${part.toFixed(Math.max(0, Math.ceil(nines) - 1))}% took no longer than: ${values.join("; ")}`;
    const cursor = byId("curves-cursor");
    cursor.setAttribute("x1", scale.x(nines));
    cursor.setAttribute("x2", scale.x(nines));
    cursor.setAttribute("visibility", "visible");
  }

  let at = 2;
  chart.addEventListener("pointermove", (event) => {
    if (!scale || !shown.length) return;
    const box = chart.getBoundingClientRect();
    const x = (event.clientX - box.left) * scale.width / box.width;
    at = Math.min(Math.max((x - left) / (scale.width - left - right) * scale.nines, 0), scale.nines);
    read(at);
  });
  chart.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -0.1, ArrowRight: 0.1 }[event.key];
    if (!step || !shown.length) return;
    at = Math.min(Math.max(at + step, 0), scale.nines);
    read(at);
    event.preventDefault();
  });
  chosen.addEventListener("change", () => show(Number(chosen.value)));
  if (options.length) show(0);

  /** Shows a connection's curves. */
  function choose(connection) {
    const place = options.findIndex((it) => it.connection === connection);
    if (place < 0) return;
    chosen.value = String(place);
    show(place);
    byId("stages").scrollIntoView();
    chosen.focus({ preventScroll: true });
  }
  return { draw: () => shown.length && draw(), choose };
})();
