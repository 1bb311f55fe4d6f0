// The arithmetic of the time line: where each item goes. No element is touched here.

// quietWidth is how wide an idle stretch is drawn, in pixels: enough for its length to be written in it.
export const quietWidth = 50

// stretches cuts the run's time where items begin or end. A stretch in which nothing does is quiet when it is longer
// than a quarter of all that is left: such a wait would otherwise leave no room for what happened. Returns
// [{from, to, quiet}] in order, with neighbours of one kind joined; times in microseconds.
export function stretches(items, end, shorten) {
  const cuts = [...new Set([0, end, ...items.flatMap((item) => [item.start_us, item.end_us])])].sort((a, b) => a - b)
  const gaps = cuts.slice(1).map((to, i) => ({ from: cuts[i], to, quiet: false }))
  if (shorten) markQuiet(gaps, end)
  const joined = []
  for (const gap of gaps) {
    const last = joined.at(-1)
    if (last && !last.quiet && !gap.quiet) last.to = gap.to
    else joined.push({ ...gap })
  }
  return joined.length > 0 ? joined : [{ from: 0, to: 1, quiet: false }]
}

function markQuiet(gaps, left) {
  const longest = [...gaps].sort((a, b) => (b.to - b.from) - (a.to - a.from))
  // With few gaps there is enough room for all.
  for (const gap of longest.slice(0, Math.max(0, gaps.length - 8))) {
    if (gap.to - gap.from <= left / 4) return
    gap.quiet = true
    left -= gap.to - gap.from
  }
}

// Scale turns times into pixels and back.
export class Scale {
  constructor(parts, pixelsPerUs) {
    this.pixelsPerUs = pixelsPerUs
    let x = 0
    this.parts = parts.map((part) => {
      const width = part.quiet ? quietWidth : (part.to - part.from) * pixelsPerUs
      const placed = { ...part, x, width }
      x += width
      return placed
    })
    this.width = x
  }

  // fitting is the scale at which all parts take so many pixels.
  static fitting(parts, width) {
    const quiet = parts.filter((part) => part.quiet).length
    const busy = parts.reduce((sum, part) => sum + (part.quiet ? 0 : part.to - part.from), 0)
    return new Scale(parts, Math.max(40, width - quiet * quietWidth) / Math.max(1, busy))
  }

  x(us) {
    const part = last(this.parts, (p) => p.from <= us)
    return part.x + Math.min(1, (us - part.from) / Math.max(1, part.to - part.from)) * part.width
  }

  us(x) {
    const part = last(this.parts, (p) => p.x <= x)
    return part.from + Math.min(1, (x - part.x) / Math.max(1, part.width)) * (part.to - part.from)
  }

  // ticks are the times that the axis names, at least so many pixels apart.
  ticks(apart) {
    const step = roundStep(apart / this.pixelsPerUs)
    const all = []
    for (const part of this.parts.filter((p) => !p.quiet)) {
      for (let us = Math.ceil(part.from / step) * step; us <= part.to; us += step) {
        const x = this.x(us)
        if (all.length === 0 || x - all.at(-1).x >= apart * 0.7) all.push({ us, x })
      }
    }
    return all
  }
}

// last is the last element of a sorted list that satisfies a condition which holds for a first part of it, else the first.
function last(list, holds) {
  let low = 0
  let high = list.length
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if (holds(list[middle])) low = middle
    else high = middle
  }
  return list[low]
}

// roundStep is the next 1, 2 or 5 of a power of ten.
function roundStep(us) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, us)))
  return power * ([1, 2, 5].find((n) => n * power >= us) ?? 10)
}

// arrange gives each item of one lane a row: { rows, of: Map from item to row }. A span and what it contains stay together in
// neighbouring rows, as do the messages of one client.
export function arrange(items) {
  const blocks = [...grouped(items).values()].map(stack).sort((a, b) => a.from - b.from)
  const free = [] // when each row is free again
  const of = new Map()
  for (const block of blocks) {
    const top = firstFit(free, block)
    for (const [item, row] of block.rowOf) of.set(item, top + row)
    for (let row = top; row < top + block.height; row++) free[row] = block.to
  }
  return { rows: Math.max(1, free.length), of }
}

function grouped(items) {
  const here = new Map(items.map((item) => [item.id, item]))
  const groups = new Map()
  for (const item of items) {
    let root = item
    for (let steps = 0; here.has(root.parent) && steps < 100; steps++) root = here.get(root.parent)
    const key = root.kind === 'message' && root.group ? `group ${root.group}` : `item ${root.id}`
    if (!groups.has(key)) groups.set(key, [])
    groups.get(key).push(item)
  }
  return groups
}

// stack packs the items of one group: an item goes into the first row that is free when it begins. A mark sits on the
// span that it belongs to.
function stack(items) {
  const sorted = [...items].sort((a, b) => a.start_us - b.start_us || b.end_us - a.end_us)
  const byID = new Map(items.map((item) => [item.id, item]))
  const free = []
  const rowOf = new Map()
  for (const item of sorted) {
    const parent = byID.get(item.parent)
    if (item.kind === 'mark' && rowOf.has(parent)) {
      rowOf.set(item, rowOf.get(parent))
      continue
    }
    let row = free.findIndex((end) => end <= item.start_us)
    if (row < 0) row = free.length
    free[row] = item.end_us
    rowOf.set(item, row)
  }
  return { from: sorted[0].start_us, to: Math.max(...items.map((item) => item.end_us)), height: free.length, rowOf }
}

function firstFit(free, block) {
  for (let top = 0; ; top++) {
    let row = 0
    while (row < block.height && (free[top + row] ?? 0) <= block.from) row++
    if (row === block.height) return top
  }
}
