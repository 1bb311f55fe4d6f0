// The axis above the lanes, and the lines that go down from it: times, idle stretches and the run's steps.
import { el, svg, time } from './dom.js'

export const axisHeight = 40 // pixels
const tickWidth = 52
const flagWidth = 26

export class Axis {
  constructor() {
    this.node = el('div', { class: 'axis', 'aria-hidden': 'true' })
    this.grid = svg('svg', { class: 'grid', 'aria-hidden': 'true' })
  }

  // place draws everything for a scale that begins so many pixels from the left, over so many pixels of lanes.
  place(scale, steps, margin, height) {
    const ticks = scale.ticks(90)
    const idle = scale.parts.filter((part) => part.quiet)
    const at = (us) => margin + scale.x(us)
    this.node.replaceChildren(
      ...ticks.filter(({ x }) => hasRoom(x, scale.width + margin, idle)).map(({ us, x }) => label('tick', x + margin, time(Math.round(us)))),
      ...idle.map((part) => label('quiet', part.x + margin, time(part.to - part.from))),
      ...flags(steps, at).map(({ x, from, to }) => label('flag', x, from === to ? `${from}` : `${from}–${to}`)))
    this.grid.replaceChildren(
      ...idle.map((part) => svg('rect', { class: 'quiet-band', x: part.x + margin, y: 0, width: part.width, height })),
      ...ticks.map(({ x }) => line('tick-line', x + margin, height)), ...steps.map((step) => line('step-line', at(step.at_us), height)))
  }
}

// hasRoom tells whether the name of a time fits between the idle stretches and the end.
function hasRoom(x, end, idle) {
  return x + tickWidth < end && idle.every((part) => x + tickWidth < part.x || x > part.x + part.width)
}

// flags are the numbers of the steps; those that would cover one another share one.
function flags(steps, at) {
  const groups = []
  for (const [i, step] of steps.entries()) {
    const x = at(step.at_us)
    const last = groups.at(-1)
    if (last && x - last.x < flagWidth) last.to = i + 1
    else groups.push({ x, from: i + 1, to: i + 1 })
  }
  return groups
}

function label(name, x, text) {
  const node = el('span', { class: name }, text)
  node.style.transform = `translateX(${x.toFixed(1)}px)`
  return node
}

function line(name, x, height) {
  return svg('line', { class: name, x1: x.toFixed(1), x2: x.toFixed(1), y1: 0, y2: height })
}
