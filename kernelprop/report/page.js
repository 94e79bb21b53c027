"use strict";
(function () {
  var networks = JSON.parse(document.getElementById("data").textContent);
  var which = document.getElementById("which");
  var depth = document.getElementById("depth");
  var map = document.getElementById("map");
  networks.forEach(function (network) {
    network.pixels = Uint8Array.from(atob(network.bytes), function (letter) { return letter.charCodeAt(0); });
  });

  // Level 0 is correlation -1, 127 is 0, 254 is 1, 255 undefined. White at 0, blue towards 1, orange towards -1.
  function colour(level) {
    if (level === 255) { return [190, 190, 190]; }
    var share = (level - 127) / 127;
    var stops = share >= 0 ? [[255, 255, 255], [107, 174, 214], [8, 48, 107]] : [[255, 255, 255], [253, 174, 107], [127, 39, 4]];
    var at = Math.abs(share) * 2, first = Math.min(1, Math.floor(at)), rest = at - first;
    return [0, 1, 2].map(function (n) { return Math.round(stops[first][n] * (1 - rest) + stops[first + 1][n] * rest); });
  }

  function paint(canvas, levels, width, height) {
    canvas.width = width;
    canvas.height = height;
    var context = canvas.getContext("2d"), image = context.createImageData(width, height);
    levels.forEach(function (level, n) {
      var rgb = colour(level);
      for (var part = 0; part < 3; part++) { image.data[4 * n + part] = rgb[part]; }
      image.data[4 * n + 3] = 255;
    });
    context.putImageData(image, 0, 0);
  }

  function kernel(network, index) {
    var area = network.size * network.size;
    return network.pixels.subarray(index * area, (index + 1) * area);
  }

  function words(value) {
    if (value === null) { return "undefined"; }
    if (typeof value === "string") { return value.replace("inf", "∞"); }
    if (value > 0.9995 && value < 1) { return value > 1 - 1e-7 ? "1 - " + (1 - value).toExponential(1) : value.toFixed(7); }
    return String(Number(value.toPrecision(4)));
  }

  function show() {
    var network = networks[Number(which.value)], index = Number(depth.value), number = network.depths[index];
    depth.max = network.depths.length - 1;
    document.getElementById("chosen").textContent = number;
    depth.setAttribute("aria-valuetext", "depth " + number);
    paint(map, kernel(network, index), network.size, network.size);
    map.setAttribute("aria-label", "correlation matrix, " + network.name + ", depth " + number);
    var ends = network.diagonal[index].map(words);
    var lines = [["mean correlation", words(network.mean_correlation[index])], ["rank residual", words(network.rank_residual[index])],
      ["diagonal", ends[0] === ends[1] ? ends[0] : ends.join(" to ")]];
    var list = document.getElementById("readout");
    list.textContent = "";
    lines.forEach(function (line) {
      ["dt", "dd"].forEach(function (tag, n) {
        list.appendChild(document.createElement(tag)).textContent = line[n];
      });
    });
    document.querySelectorAll(".chart > svg").forEach(function (chart) {
      var low = Number(chart.dataset.low), high = Number(chart.dataset.high), cursor = chart.querySelector(".cursor");
      var place = Number(chart.dataset.left) + Number(chart.dataset.width) * (number - low) / (high - low);
      cursor.setAttribute("transform", "translate(" + place + " 0)");
      cursor.style.visibility = number >= low && number <= high ? "visible" : "hidden";
    });
  }

  function strips() {
    networks.forEach(function (network) {
      var last = network.depths.length - 1, picked = [];
      [0, 0.25, 0.5, 0.75, 1].forEach(function (share) {
        var index = Math.round(share * last);
        if (picked.indexOf(index) < 0) { picked.push(index); }
      });
      var name = document.createElement("p"), strip = document.createElement("div");
      name.className = "stripname";
      name.textContent = network.name;
      strip.className = "strip";
      picked.forEach(function (index) {
        var figure = document.createElement("figure"), canvas = document.createElement("canvas");
        paint(canvas, kernel(network, index), network.size, network.size);
        canvas.setAttribute("role", "img");
        canvas.setAttribute("aria-label", "correlation matrix, " + network.name + ", depth " + network.depths[index]);
        figure.appendChild(canvas);
        figure.appendChild(document.createElement("figcaption")).textContent = "depth " + network.depths[index];
        strip.appendChild(figure);
      });
      document.getElementById("strips").append(name, strip);
    });
  }

  function open(all) {
    document.querySelectorAll("details").forEach(function (one) {
      if (all) { one.dataset.was = one.open; one.open = true; } else if (one.dataset.was === "false") { one.open = false; }
    });
  }

  paint(document.getElementById("bar"), Array.from({ length: 255 }, function (_, level) { return level; }), 255, 1);
  document.getElementById("explorer").hidden = false;
  document.getElementById("colours").hidden = false;
  document.querySelectorAll(".legend .mark").forEach(function (one) { one.hidden = false; });
  which.addEventListener("change", show);
  depth.addEventListener("input", show);
  window.addEventListener("beforeprint", function () { open(true); });
  window.addEventListener("afterprint", function () { open(false); });
  strips();
  show();
})();
