// Texts of a page whose contrast is below WCAG AA, as [contrast, words, colour, ground]; those of disabled buttons are exempt.

const parts = (colour) => {
  const numbers = (colour.match(/[\d.]+/g) || []).map(Number);
  return numbers.length < 3 ? [0, 0, 0, 0] : [...numbers.slice(0, 3), numbers.length > 3 ? numbers[3] : 1];
};
const light = ([r, g, b]) => {
  const [x, y, z] = [r, g, b].map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
};
const over = (front, back) => {
  const a = front[3];
  return [0, 1, 2].map((at) => front[at] * a + back[at] * (1 - a)).concat(1);
};

function painted(element) {
  const look = getComputedStyle(element);
  if (element instanceof SVGElement && element.tagName !== "svg") {
    if (["text", "g", "title"].includes(element.tagName) || look.fill === "none") return [0, 0, 0, 0];
    const colour = parts(look.fill);
    return [...colour.slice(0, 3), colour[3] * Number(look.fillOpacity) * Number(look.opacity)];
  }
  return parts(look.backgroundColor);
}

function ground(element, x, y) {
  const all = document.elementsFromPoint(x, y); // what is over the words does not count
  const stack = all.slice(Math.max(0, all.indexOf(element))).filter((one) => one === element || !element.contains(one));
  const layers = [];
  for (const one of stack) {
    const layer = painted(one);
    if (layer[3] > 0) layers.push(layer);
    if (layer[3] === 1) break;
  }
  const paper = parts(getComputedStyle(document.body).backgroundColor);
  return layers.reverse().reduce((back, front) => over(front, back), paper);
}

function halo(look) { // a rim of at least 1.5 pixels around the letters is the ground that they are read on
  const rim = look.paintOrder.startsWith("stroke") && look.stroke !== "none" && parseFloat(look.strokeWidth) >= 3;
  const colour = parts(look.stroke);
  return rim ? [...colour.slice(0, 3), colour[3] * Number(look.strokeOpacity)] : [0, 0, 0, 0];
}

const faults = [];
let seen = 0;
for (const element of document.querySelectorAll("body *")) {
  const words = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.textContent.trim()).join("");
  if (!words || ["SCRIPT", "STYLE", "NOSCRIPT", "title"].includes(element.tagName) || element.closest(":disabled, .replay-words")) continue;
  if (!element.checkVisibility()) continue;
  element.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
  const box = element.getBoundingClientRect();
  if (!box.width || !box.height) continue;
  const look = getComputedStyle(element);
  const [x, y] = [box.left + Math.min(box.width / 2, innerWidth - 2), box.top + box.height / 2];
  const back = over(halo(look), ground(element, x, y)), front = over(parts(element instanceof SVGElement ? look.fill : look.color), back);
  const [bright, dim] = [light(front), light(back)].sort((a, b) => b - a);
  const contrast = (bright + 0.05) / (dim + 0.05);
  const size = parseFloat(look.fontSize), large = size >= 24 || (size >= 18.66 && Number(look.fontWeight) >= 700);
  seen += 1;
  if (contrast < (large ? 3 : 4.5)) faults.push([+contrast.toFixed(2), words.slice(0, 40), front.slice(0, 3).map(Math.round).join(), back.slice(0, 3).map(Math.round).join()]);
}
return [seen, faults];
