"use strict";
// The frames come in the order of a walk: the frames that one called follow it, deeper by one.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const graph = document.getElementById("graph");
  const about = document.getElementById("about");
  const found = document.getElementById("found");
  const find = document.getElementById("find");
  const whole = document.getElementById("whole");
  if (!data || !data.walked.length) return;
  const ROW = 18, CHARACTER = 7.3, NARROWEST = 0.4;
  const SVG = "http://www.w3.org/2000/svg";

  const nodes = [];
  const path = [];
  for (const [name, weight, depth] of data.walked) {
    const parent = depth > 0 ? path[depth - 1] : null;
    const node = { index: nodes.length, name: data.names[name], weight, depth, parent, at: 0, next: 0 };
    if (parent) {
      node.at = parent.next;
      parent.next += weight;
    }
    node.next = node.at;
    path.length = depth;
    path.push(node);
    nodes.push(node);
  }
  const total = nodes[0].weight;

  function shown(weight) {
    if (!data.is_time) return weight.toLocaleString("en-US");
    for (const [unit, length] of [["s", 1e9], ["ms", 1e6], ["us", 1e3]]) {
      if (weight >= length) return (weight / length).toPrecision(3) + " " + unit;
    }
    return weight + " ns";
  }
  // As dptrace prints it: only nothing is 0%, and only all is 100%.
  function percent(part, of) {
    const share = 100 * part / Math.max(of, 1);
    if (part > 0 && share <= 0.005) return "<0.01%";
    if (part < of && share >= 99.995) return ">99.99%";
    return share.toFixed(part === of ? 0 : 2) + "%";
  }

  function describe(node) {
    const parts = [node.name + ": " + shown(node.weight), percent(node.weight, total) + " of all"];
    if (focus !== nodes[0]) parts.push(percent(node.weight, focus.weight) + " of " + focus.name);
    return parts.join(", ");
  }

  // A colour for each name, the same in each place.
  function colour(name) {
    let hash = 0;
    for (let at = 0; at < name.length; at++) hash = (hash * 31 + name.charCodeAt(at)) | 0;
    return "f" + (hash & 3);
  }

  let focus = nodes[0];

  function draw() {
    const width = Math.max(graph.clientWidth, 300);
    const scale = width / Math.max(focus.weight, 1);
    const wanted = find.value.toLowerCase();
    const svg = document.createElementNS(SVG, "svg");
    let deepest = 0, matching = 0, until = -1;
    for (const node of nodes) {
      const isOuter = node.depth < focus.depth;
      if (isOuter ? node.at > focus.at || node.at + node.weight < focus.at + focus.weight
        : node.at < focus.at || node.at >= focus.at + focus.weight || (node.depth === focus.depth && node !== focus)) continue;
      const x = isOuter ? 0 : (node.at - focus.at) * scale;
      const w = isOuter ? width : node.weight * scale;
      const isHit = wanted !== "" && node.name.toLowerCase().includes(wanted);
      // A match within a match counts once.
      if (isHit && !isOuter && node.at >= until) {
        matching += node.weight;
        until = node.at + node.weight;
      }
      if (w < NARROWEST) continue;
      deepest = Math.max(deepest, node.depth);
      const rect = document.createElementNS(SVG, "rect");
      const place = { x, y: node.depth * ROW, width: w, height: ROW - 1 };
      for (const key in place) rect.setAttribute(key, place[key].toFixed(2));
      rect.setAttribute("class", (isHit ? "hit" : colour(node.name)) + (isOuter ? " outer" : ""));
      rect.dataset.node = node.index;
      svg.append(rect);
      const room = Math.floor((w - 6) / CHARACTER);
      if (room >= 3) {
        const text = document.createElementNS(SVG, "text");
        text.setAttribute("x", (x + 3).toFixed(2));
        text.setAttribute("y", (node.depth * ROW + 13).toFixed(2));
        text.textContent = node.name.length > room ? node.name.slice(0, room - 1) + "…" : node.name;
        svg.append(text);
      }
    }
    const height = (deepest + 1) * ROW;
    svg.setAttribute("viewBox", "0 0 " + width + " " + height);
    svg.setAttribute("height", height);
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", "Flame graph; the table below has the same functions");
    graph.replaceChildren(svg);
    whole.disabled = focus === nodes[0];
    found.textContent = wanted === "" ? "" : percent(matching, focus.weight) + " in matching functions";
    about.textContent = describe(focus);
  }

  // The address has the frame that is shown, so that a link to it can be passed on.
  function show(node) {
    history.replaceState(null, "", node === nodes[0] ? location.pathname + location.search : "#frame=" + node.index);
    focus = node;
    draw();
  }

  function fromAddress() {
    const match = /^#frame=(\d{1,9})$/.exec(location.hash);
    focus = nodes[match ? Number(match[1]) : 0] || nodes[0];
    draw();
  }

  const under = event => nodes[event.target.dataset ? event.target.dataset.node : undefined];
  graph.addEventListener("click", event => { const node = under(event); if (node) show(node); });
  graph.addEventListener("mousemove", event => { about.textContent = describe(under(event) || focus); });
  graph.addEventListener("mouseleave", () => { about.textContent = describe(focus); });
  whole.addEventListener("click", () => show(nodes[0]));
  find.addEventListener("input", draw);
  document.addEventListener("keydown", event => {
    if (event.key !== "Escape") return;
    if (focus !== nodes[0]) show(nodes[0]);
    else { find.value = ""; draw(); }
  });
  window.addEventListener("hashchange", fromAddress);
  window.addEventListener("resize", draw);
  fromAddress();
})();
