// One name for markup: a tagged template, whose values are text or elements, never markup.
import {h} from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export const html = htm.bind(h);
