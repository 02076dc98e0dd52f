"use strict";
// Draws the report that stands beside it. Everything is put in as text, never as markup: names come from a server that
// may be anybody's.
const report = JSON.parse(document.getElementById("report").textContent);
const page = document.getElementById("page");
const tip = document.getElementById("tip");
const outcomes = [["ok", "in time"], ["late", "late"], ["rejected", "rejected"], ["failed", "failed"]];
const words = {pass: "PASS", fail: "FAIL", inconclusive: "INCONCLUSIVE", invalid: "INVALID", none: "NO VERDICT"};

// ---------------------------------------------------------------- elements and numbers
function add(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
  for (const child of children) if (child !== null) node.append(child);
  return node;
}
const el = (name, attributes, ...children) => add(document.createElement(name), attributes, children);
const svg = (name, attributes, ...children) =>
  add(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
const number = (value, digits) =>
  value.toLocaleString("en-US", {maximumFractionDigits: digits, minimumFractionDigits: digits});
const count = value => number(value, 0);
const ms = value => value === 0 ? "0" : number(value, value < 1 ? 3 : value < 10 ? 2 : value < 100 ? 1 : 0);
const most = (list, otherwise) => list.reduce((a, b) => Math.max(a, b), otherwise || 0);
const sum = list => list.reduce((a, b) => a + b, 0);
const card = (title, ...children) => el("div", {class: "card"}, el("h3", {}, title), ...children);
const badge = result => el("span", {class: "badge " + result}, words[result]);
const tile = (value, text) => el("div", {class: "tile"}, el("b", {}, value), el("span", {}, text));
const key = entries => el("div", {class: "key"}, ...entries.map(([colour, text]) =>
  el("span", {}, el("i", {style: `background:var(--${colour})`}), text)));
function table(heads, rows) {
  return el("div", {class: "scroll"}, el("table", {},
    heads.some(Boolean) ? el("thead", {}, el("tr", {}, ...heads.map(h => el("th", {scope: "col"}, h)))) : null,
    el("tbody", {}, ...rows.map(row => el("tr", {}, ...row.map(cell => el("td", {}, cell)))))));
}
// The numbers behind a plot, made when somebody opens them.
function numbers(heads, rows) {
  const details = el("details", {}, el("summary", {}, "The numbers"));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(table(heads, rows()));
  });
  return details;
}

// ---------------------------------------------------------------- charts
const L = 52, R = 10, T = 12, B = 24;

// Round steps that cut [0, end] into about `about` pieces.
function ticks(end, about) {
  const rough = end / about, power = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = [1, 2, 5, 10].map(f => f * power).find(s => s >= rough * 0.999);
  return Array.from({length: Math.floor(end / step * 1.0001) + 1}, (_, i) => i * step);
}
const tickText = (value, end) => number(value, end < 0.1 ? 3 : end < 1 ? 2 : end < 10 ? 1 : 0);

// A chart as wide as the page lets it be, drawn anew when that changes. draw({chart, x, y, width}) puts its marks in.
function plot(options, draw) {
  const chart = svg("svg", {role: "img", "aria-label": options.label, class: options.name, tabindex: "0"});
  const height = options.height || 220;
  const redraw = width => {
    chart.replaceChildren();
    chart.setAttribute("viewBox", `0 0 ${width} ${height}`);
    chart.setAttribute("height", height);
    const x = v => L + (width - L - R) * v / options.xEnd;
    const y = v => height - B - (height - T - B) * Math.min(v, options.yEnd) / options.yEnd;
    for (const v of ticks(options.yEnd, 4)) {
      chart.append(svg("line", {class: "grid", x1: L, x2: width - R, y1: y(v), y2: y(v)}),
        svg("text", {x: L - 6, y: y(v) + 4, "text-anchor": "end"}, tickText(v, options.yEnd)));
    }
    const marks = options.xMarks || ticks(options.xEnd, Math.max(3, width / 110)).map(v => [v, tickText(v, options.xEnd)]);
    marks.forEach(([v, text]) => {
      if (x(v) < width - R - 26) chart.append(svg("text", {x: x(v), y: height - 7, "text-anchor": "middle"}, text));
    });
    chart.append(svg("text", {x: width - R, y: height - 7, "text-anchor": "end"}, options.xUnit));
    draw({chart, x, y, width, height});
    if (options.time) chart.append(svg("line", {class: "cursor", y1: T, y2: height - B}));
  };
  charts.push({chart, redraw, width: 0});
  if (options.time) followPointer(chart);
  return chart;
}
const charts = [];
function drawAll() {
  for (const one of charts) {
    const width = Math.round(one.chart.parentElement ? one.chart.getBoundingClientRect().width : 0);
    if (width > 0 && width !== one.width) { one.width = width; one.redraw(width); }
  }
}
function line(points, colour, width, more) {
  let d = "", pen = false;
  for (const p of points) {
    // With a dot to begin with, so that a point that stands alone is seen.
    if (p !== null) d += (pen ? "L" : "M") + p[0].toFixed(1) + " " + p[1].toFixed(1) + (pen ? "" : "h.01");
    pen = p !== null;
  }
  return svg("path", {d, stroke: `var(--${colour})`, "stroke-width": width, class: colour, ...(more || {})});
}

// ---------------------------------------------------------------- the common time axis
const spanOf = model => Math.max(report.measured_s, model.timeline.ok.length * model.timeline.width_s) || 1;
let shown = null;  // The model whose charts are on the page.

function showAt(seconds, clientX, clientY) {
  const t = shown.timeline, slot = Math.floor(seconds / t.width_s);
  if (slot < 0 || slot >= t.ok.length) return hideCursor();
  const lines = [`${number(slot * t.width_s, 1)} to ${number((slot + 1) * t.width_s, 1)} s`];
  if (t.ok[slot] + t.late[slot] > 0) {
    lines.push(`p50 ${ms(t.p50_ms[slot])} ms`, `p99 ${ms(t.p99_ms[slot])} ms`, `max ${ms(t.max_ms[slot])} ms`);
  }
  for (const [name, text] of outcomes) if (t[name][slot] > 0) lines.push(`${text} ${count(t[name][slot])}`);
  for (const job of report.training ? report.training.jobs : []) {
    const i = report.training.at_s.findIndex(at => at >= seconds);
    if (i >= 0) lines.push(`job ${job.job}: ${number(job.iterations_per_s[i], 1)}/s, held ${number(100 * job.held_share[i], 0)} %`);
  }
  tip.textContent = lines.join("\n");
  tip.style.display = "block";
  tip.style.left = Math.max(4, Math.min(clientX + 14, innerWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = Math.max(4, Math.min(clientY + 14, innerHeight - tip.offsetHeight - 8)) + "px";
  for (const {chart, width} of charts) {
    const cursor = chart.querySelector(".cursor");
    if (!cursor) continue;
    const x = L + (width - L - R) * seconds / spanOf(shown);
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
    cursor.style.visibility = "visible";
  }
}
function hideCursor() {
  tip.style.display = "none";
  for (const cursor of document.querySelectorAll(".cursor")) cursor.style.visibility = "hidden";
}
function followPointer(chart) {
  const secondsAt = clientX => {
    const box = chart.getBoundingClientRect();
    return (clientX - box.left - L) / (box.width - L - R) * spanOf(shown);
  };
  chart.addEventListener("pointermove", event => showAt(secondsAt(event.clientX), event.clientX, event.clientY));
  chart.addEventListener("pointerleave", hideCursor);
  chart.addEventListener("blur", hideCursor);
  let slot = -1;
  chart.addEventListener("keydown", event => {
    const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (!step) return;
    event.preventDefault();
    const t = shown.timeline, box = chart.getBoundingClientRect();
    slot = Math.max(0, Math.min(t.ok.length - 1, slot + step));
    const seconds = (slot + 0.5) * t.width_s;
    showAt(seconds, box.left + L + (box.width - L - R) * seconds / spanOf(shown), box.top + T);
  });
}

// ---------------------------------------------------------------- one model
// Where requests were due and none was answered the lines have a gap. What missed is marked: late ones where they ended,
// those without an answer at the top.
function latencyChart(model) {
  const t = model.timeline, answered = t.ok.map((n, i) => n + t.late[i]);
  const due = answered.map((n, i) => n + t.rejected[i] + t.failed[i]);
  const sorted = t.max_ms.slice().sort((a, b) => a - b);
  const typical = Math.max(most(t.p99_ms), sorted[Math.floor(sorted.length * 0.98)] || 0);
  const yEnd = Math.max(typical, model.slo_ms || 0) * 1.12 || 1;
  const missed = ["late", "rejected", "failed"].map(name => `${count(model[name])} ${name}`).join(", ");
  const label = `Latency over ${number(spanOf(model), 0)} seconds. The highest p50 of a moment is ${ms(most(t.p50_ms))} ms, ` +
    `the highest p99 ${ms(most(t.p99_ms))} ms, the longest answer ${ms(most(t.max_ms))} ms` +
    (model.slo_ms === null ? "" : `; the SLO is ${ms(model.slo_ms)} ms`) + `. ${missed}.`;
  const chart = plot({name: "latency", label, xEnd: spanOf(model), yEnd, xUnit: "s", time: true, height: 250},
    ({chart, x, y, width}) => {
      const at = i => x((i + 0.5) * t.width_s);
      const points = list => list.map((v, i) => answered[i] > 0 ? [at(i), y(v)] : null).filter((_, i) => due[i] > 0);
      chart.append(line(points(t.max_ms), "max", 1), line(points(t.p99_ms), "p99", 1.8), line(points(t.p50_ms), "p50", 1.8));
      if (model.slo_ms !== null) {
        chart.append(line([[L, y(model.slo_ms)], [width - R, y(model.slo_ms)]], "slo", 1.3, {"stroke-dasharray": "7 5"}),
          svg("text", {x: width - R, y: y(model.slo_ms) - 5, "text-anchor": "end"}, `SLO ${ms(model.slo_ms)} ms`));
      }
      for (let i = 0; i < t.ok.length; ++i) {
        if (t.late[i] > 0) chart.append(svg("circle", {class: "mark late", cx: at(i), cy: y(t.max_ms[i]), r: 3.2, fill: "var(--late)"}));
        if (t.rejected[i] > 0) {
          chart.append(svg("rect", {class: "mark rejected", x: at(i) - 2.5, y: T - 9, width: 5, height: 5, fill: "var(--rejected)"}));
        }
        if (t.failed[i] > 0) {
          chart.append(svg("path", {class: "mark failed", d: `M${at(i) - 3} ${T - 1}l6 6m0 -6l-6 6`, stroke: "var(--failed)",
            "stroke-width": 1.8}));
        }
      }
    });
  return card("Latency in ms, by the time at which a request was due", chart,
    key([["p50", "p50"], ["p99", "p99"], ["max", "max"],
      ...["late", "rejected", "failed"].filter(name => model[name] > 0).map(name => [name, name])]),
    numbers(["from s", "p50 ms", "p99 ms", "max ms"], () => t.ok.map((_, i) =>
      [number(i * t.width_s, 1), ...(answered[i] > 0 ? [ms(t.p50_ms[i]), ms(t.p99_ms[i]), ms(t.max_ms[i])] : ["", "", ""])])));
}
function outcomeChart(model) {
  const t = model.timeline;
  const totals = t.ok.map((_, i) => sum(outcomes.map(([name]) => t[name][i])));
  const yEnd = most(totals) / t.width_s * 1.1 || 1;
  const all = outcomes.map(([name, text]) => `${count(model[name])} ${text}`).join(", ");
  const label = `Requests per second by outcome. In all: ${all}.`;
  const chart = plot({name: "outcomes", label, xEnd: spanOf(model), yEnd, xUnit: "s", time: true, height: 170},
    ({chart, x, y}) => {
      for (let i = 0; i < t.ok.length; ++i) {
        let base = 0;
        const wide = x((i + 1) * t.width_s) - x(i * t.width_s);
        for (const [name] of outcomes) {
          const rate = t[name][i] / t.width_s;
          if (rate === 0) continue;
          chart.append(svg("rect", {x: x(i * t.width_s), width: Math.max(wide - (wide > 4 ? 1 : 0), 0.5), y: y(base + rate),
            height: y(base) - y(base + rate), fill: `var(--${name})`}));
          base += rate;
        }
      }
    });
  return card("Requests per second, by outcome", chart, key(outcomes.filter(([name]) => name === "ok" || model[name] > 0)),
    numbers(["from s", ...outcomes.map(([, text]) => text)], () => t.ok.map((_, i) =>
      [number(i * t.width_s, 1), ...outcomes.map(([name]) => count(t[name][i]))])));
}
// On the time axis of the charts above it.
function trainingCharts(model) {
  if (!report.training) return [];
  const {at_s: times, jobs} = report.training, span = spanOf(model);
  const colours = ["train", "p50", "p99", "late", "rejected", "ok"];
  const made = (name, title, field, yEnd, total) => {
    const label = `${title}. ` + jobs.map(job => `Job ${job.job}: ${total(job)}`).join("; ") + ".";
    const chart = plot({name, label, xEnd: span, yEnd, xUnit: "s", time: true, height: 130}, ({chart, x, y}) => {
      jobs.forEach((job, j) => chart.append(line(times.map((at, i) =>
        at < 0 || at > span * 1.02 ? null : [x(Math.min(at, span)), y(job[field][i])]), colours[j % colours.length], 1.8)));
    });
    return card(title, chart, key(jobs.map((job, j) => [colours[j % colours.length], `job ${job.job}: ${total(job)}`])),
      numbers(["until s", ...jobs.map(job => "job " + job.job)], () => times.map((at, i) =>
        [number(at, 1), ...jobs.map(job => number(job[field][i], 2))])));
  };
  const held = job => `held ${number(sum(Object.values(job.held_s)), 1)} s` +
    Object.entries(job.held_s).map(([reason, s]) => ` (${reason || "no reason"} ${number(s, 1)} s)`).join("");
  return [made("training", "Training beside it: iterations per second", "iterations_per_s",
    most(jobs.flatMap(job => job.iterations_per_s)) * 1.1 || 1, job => `${count(job.iterations)} iterations`),
  made("held", "Share of the time that training was held", "held_share", 1.05, held)];
}
// Percent on an axis on which every further nine takes as much room as the one before.
function distributionChart(model) {
  const points = model.distribution;
  if (points.length === 0) return card("Distribution of latency", el("p", {class: "sub"}, "Nothing was answered."));
  const nines = percent => -Math.log10(Math.max(1 - percent / 100, 1e-5));
  const xMarks = [[50, "50 %"], [90, "90"], [99, "99"], [99.9, "99.9"], [99.99, "99.99"]].map(([p, t]) => [nines(p), t]);
  const yEnd = points[points.length - 1][0] * 1.1 || 1, l = model.latency;
  const label = `Distribution of latency: half of the answers within ${ms(l.p50_ms)} ms, 90 % within ${ms(l.p90_ms)} ms, ` +
    `99 % within ${ms(l.p99_ms)} ms, 99.9 % within ${ms(l.p99_9_ms)} ms, all within ${ms(l.max_ms)} ms.`;
  const chart = plot({name: "distribution", label, xEnd: nines(100), yEnd, xUnit: "max", xMarks, height: 420},
    ({chart, x, y, width, height}) => {
      for (const [v] of xMarks) chart.append(svg("line", {class: "grid", x1: x(v), x2: x(v), y1: T, y2: height - B}));
      chart.append(line(points.map(([v, p]) => [x(nines(p)), y(v)]), "p50", 2));
      if (model.slo_ms !== null && model.slo_ms < yEnd) {
        chart.append(line([[L, y(model.slo_ms)], [width - R, y(model.slo_ms)]], "slo", 1.3, {"stroke-dasharray": "7 5"}));
      }
    });
  return card("Distribution of latency in ms, by the percent of answers that took no longer", chart,
    numbers(["percent", "ms"], () => points.map(([v, p]) => [String(p), ms(v)])));
}
function figures(model) {
  const l = model.latency;
  const rows = [["scheduled", count(model.scheduled)], ...outcomes.map(([name, text]) => [text, count(model[name])])];
  if (model.checked > 0) rows.push(["answers compared", count(model.checked)], ["wrong answers", count(model.wrong_answers)]);
  for (const [name, v] of [["min", l.min_ms], ["mean", l.mean_ms], ["p50", l.p50_ms], ["p90", l.p90_ms], ["p95", l.p95_ms],
    ["p99", l.p99_ms], ["p99.9", l.p99_9_ms], ["p99.99", l.p99_99_ms], ["max", l.max_ms]]) rows.push([name, ms(v) + " ms"]);
  return card("Figures", table([], rows));
}
function resultOf(model) {
  return model.wrong_answers > 0 ? "fail" : model.verdict ? model.verdict.result : "none";
}
function reasonOf(model) {
  if (model.wrong_answers > 0) {
    return `${count(model.wrong_answers)} of ${count(model.checked)} answers that were compared are wrong; the first: ` +
      model.first_wrong_answer;
  }
  return model.verdict ? model.verdict.text.replace(/^[A-Z]+: /, "") : "no SLO to judge by";
}
function modelSection(model) {
  shown = model;
  const slo = model.slo_ms !== null;
  const section = el("section", {id: "model", role: report.models.length > 1 ? "tabpanel" : "region", "aria-label": model.name},
    el("div", {class: "card tiles"}, tile(number(model.offered_rate, 1) + "/s", "offered"),
      tile(number(model.goodput, 1) + "/s", slo ? "within the SLO" : "answered"), tile(ms(model.latency.p50_ms) + " ms", "p50"),
      tile(ms(model.latency.p99_ms) + " ms", "p99"), tile(ms(model.latency.max_ms) + " ms", "longest"),
      tile(number(100 * model.attainment, 2) + " %", slo ? "in time" : "answered")));
  if (model.timeline.ok.length > 0) {
    section.append(latencyChart(model), outcomeChart(model), ...trainingCharts(model));
  } else {
    section.append(card("Latency", el("p", {class: "sub"}, "No request was due in the measured time.")));
  }
  section.append(el("div", {class: "two"}, distributionChart(model), figures(model)));
  const failures = Object.entries(model.failures).map(([reason, n]) => [reason, count(n)]);
  if (failures.length > 0) section.append(card("Why requests failed", table(["reason", "requests"], failures)));
  return section;
}

// ---------------------------------------------------------------- the whole run
function verdictBanner() {
  const models = report.models, several = models.length > 1;
  const passed = models.filter(model => resultOf(model) === "pass").length;
  let text = several ? `${passed} of ${models.length} loads pass.` : reasonOf(models[0]);
  if (report.result === "none") text = "No SLO was given: there is nothing to judge.";
  const notes = report.problems.slice();
  if (report.partial) notes.push("the run was stopped before its time; this is what it had by then");
  if (report.result === "invalid") {
    text = report.problems.length > 0 ? "The generator was itself the bottleneck: the figures are not the server's."
      : "A run that was stopped is no verdict.";
  }
  return el("div", {class: "verdict " + report.result, role: "status"},
    el("strong", {}, words[report.result]), el("span", {}, text),
    notes.length > 0 ? el("ul", {}, ...notes.map(note => el("li", {}, note))) : null);
}
function overview() {
  return card("All loads", table(["load", "", "offered /s", "in time /s", "p50 ms", "p99 ms", "SLO ms", "in time", "late", "rejected", "failed"],
    report.models.map(m => [m.name, badge(resultOf(m)), number(m.offered_rate, 1), number(m.goodput, 1), ms(m.latency.p50_ms),
      ms(m.latency.p99_ms), m.slo_ms === null ? "–" : ms(m.slo_ms), number(100 * m.attainment, 2) + " %", count(m.late),
      count(m.rejected), count(m.failed)])));
}
function tabs(place) {
  const buttons = report.models.map((model, i) => {
    const button = el("button", {type: "button", role: "tab", "aria-controls": "model"}, model.name);
    button.addEventListener("click", () => choose(i));
    button.addEventListener("keydown", event => {
      const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
      if (!step) return;
      const next = (i + step + buttons.length) % buttons.length;
      choose(next);
      buttons[next].focus();
    });
    return button;
  });
  function choose(i) {
    hideCursor();
    charts.length = 0;
    buttons.forEach((button, j) => add(button, {"aria-selected": String(i === j), tabindex: i === j ? "0" : "-1"}, []));
    place.replaceChildren(el("p", {}, badge(resultOf(report.models[i])), " ", reasonOf(report.models[i])), modelSection(report.models[i]));
    drawAll();
  }
  return {list: el("div", {class: "tabs", role: "tablist", "aria-label": "Loads"}, ...buttons), choose};
}
// Where the time of a request goes, as the server and as the client sees it.
function bothViews() {
  if (report.server_view.length === 0) return [];
  const parts = [["queue", "queue"], ["compute", "compute"], ["rest", "else in the server"], ["outside", "outside the server"]];
  const bars = report.server_view.map(v => {
    const share = {queue: v.queue_ms, compute: v.compute_ms, rest: Math.max(v.total_ms - v.queue_ms - v.compute_ms, 0),
      outside: Math.max(v.client_ms - v.total_ms, 0)};
    const label = `${v.model}: ` + parts.map(([name, text]) => `${text} ${ms(share[name])} ms`).join(", ");
    return el("div", {}, el("span", {class: "sub"}, label), el("div", {class: "bar", role: "img", "aria-label": label},
      ...parts.map(([name]) => el("span", {style: `flex:${share[name]} 0 0;background:var(--${name})`}))));
  });
  return [el("h2", {}, "Both views"), card("Mean of a request, warm-up included", ...bars, key(parts),
    table(["model", "requests", "queue ms", "compute ms", "in the server ms", "at the client ms"], report.server_view.map(v =>
      [v.model, count(v.requests), ms(v.queue_ms), ms(v.compute_ms), ms(v.total_ms), ms(v.client_ms)])))];
}
function generatorCard() {
  const g = report.generator, healthy = report.problems.length === 0;
  const tiles = [tile(ms(g.send_lag.p99_ms) + " ms", "lag of sends, p99"), tile(ms(g.send_lag.max_ms) + " ms", "lag of sends, max"),
    tile(number(100 * g.cpu_share, 0) + " %", "of one core"), tile(count(g.queued), "waited for a connection")];
  if (g.check.count > 0) tiles.push(tile(ms(g.check.p99_ms) + " ms", "to compare an answer, p99"));
  return [el("h2", {}, "The generator"), el("div", {class: "card"},
    el("p", {style: "margin:0 0 10px"}, healthy ? "It kept up: what it measured is the server's." : report.problems.join("; ")),
    el("div", {class: "tiles"}, ...tiles))];
}

document.title = `${words[report.result]}: ${report.models.map(model => model.name).join(", ")}`;
page.append(el("h1", {}, "Load report: " + report.models.map(model => model.name).join(", ")),
  el("p", {class: "sub"},
    [report.date, report.url, report.server, number(report.measured_s, 1) + " s measured"].filter(Boolean).join(" · ")),
  verdictBanner());
if (report.models.length > 1) {
  const place = el("div", {});
  const {list, choose} = tabs(place);
  page.append(overview(), list, place);
  choose(0);
} else {
  page.append(modelSection(report.models[0]));
}
page.append(...bothViews(), ...generatorCard());
if (report.command) page.append(el("h2", {}, "Made by"), el("p", {class: "sub"}, el("code", {}, report.command)));
new ResizeObserver(drawAll).observe(page);
drawAll();
