"""Whether the texts of a page can be read."""

from __future__ import annotations

# Every text that is shown and whose colour is too near that of what is behind it: text, ratio, colours.
WEAK_TEXTS = """() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const parsed = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
    return [red, green, blue, alpha / 255];
  };
  const over = (top, below) => top.slice(0, 3).map((part, at) => part * top[3] + below[at] * (1 - top[3]));
  const behind = (element) => {
    const layers = [];
    for (let each = element; each; each = each.parentElement) {
      layers.push(parsed(getComputedStyle(each).backgroundColor));
      if (layers.at(-1)[3] === 1) break;
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const luminance = (colour) => {
    const [red, green, blue] = colour.map((part) => part / 255).map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const found = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    const isShown = texts.currentNode.data.trim() && element.checkVisibility({visibilityProperty: true}) && !element.closest(".unseen, :disabled, option, .skip, noscript");
    if (!isShown) continue;
    const below = behind(element);
    const [light, dark] = [luminance(over(parsed(getComputedStyle(element).color), below)), luminance(below)].sort((one, other) => other - one);
    const ratio = (light + 0.05) / (dark + 0.05);
    if (ratio < 4.5) found.push([texts.currentNode.data.trim().slice(0, 40), ratio.toFixed(2), element.className || element.tagName]);
  }
  return found;
}"""
