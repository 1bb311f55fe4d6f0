// The time line of a run: lanes of bars. A message is a bar in the lane of its sender, from the request to the answer, with
// an arrow to what it caused and one back. One item at a time is in the tab order; the arrow keys move between items.
import { el, svg, time, count } from './dom.js'
import { arrange, Scale, stretches } from './layout.js'

const head = 22 // pixels of a lane's heading
const rowHeight = 20
const lowRow = { least: 4, most: 9 } // pixels of a row in a dense lane
const denseFrom = 9 // rows; a lane with as many is drawn low until its names are asked for
const lanePad = 6
const axisHeight = 40
const tickWidth = 52
const flagWidth = 26
const manyArrows = 60 // from which on they are drawn faintly
const margin = 12 // at both ends of the time
const most = 400_000 // pixels; browsers draw wider elements badly

export class Timeline {
  // plot is the scrolling region; open is called with an item, hint with an item or null.
  constructor(plot, { open, hint }) {
    this.plot = plot
    this.open = open
    this.hint = hint
    this.fitted = true
    this.shorten = true
    this.tall = new Set() // lanes that the user has opened
    this.nodes = new Map() // item id → element
    this.run = null
    plot.addEventListener('keydown', (event) => this.key(event))
    plot.addEventListener('wheel', (event) => this.wheel(event), { passive: false })
    plot.addEventListener('focusin', (event) => this.focused(event.target))
    plot.addEventListener('focusout', () => this.look(null))
    plot.addEventListener('pointerover', (event) => this.look(this.itemOf(event.target)))
    plot.addEventListener('pointerleave', () => this.look(null))
    plot.addEventListener('click', (event) => {
      const item = this.itemOf(event.target)
      if (item) this.choose(item)
    })
    let size = ''
    new ResizeObserver(() => {
      if (size === (size = `${plot.clientWidth} ${plot.clientHeight}`)) return
      this.place()
    }).observe(plot)
  }

  // show draws a run. With the same run as before it keeps the focus and the place that is looked at.
  show(run) {
    if (this.run?.id !== run.id) {
      this.fitted = true
      this.tall.clear()
      this.current = null
    }
    this.run = run
    this.end = Math.max(1, run.took_us ?? 0, ...run.items.map((item) => Math.max(item.start_us, item.end_us ?? 0)))
    const known = new Set(run.lanes.map((lane) => lane.id))
    this.items = run.items.filter((item) => known.has(item.lane)).map((item) => ({ ...item, end_us: Math.max(item.start_us, item.end_us ?? this.end) }))
    this.byID = new Map(this.items.map((item) => [item.id, item]))
    this.caused = this.pair()
    this.lanes = run.lanes.map((lane) => this.lane(lane))
    this.draw()
  }

  // pair finds what each message caused in the lane that it went to: what has the message as its parent, or began when it arrived.
  pair() {
    const caused = new Map()
    const beginnings = new Map()
    for (const item of this.items) {
      beginnings.set(`${item.lane} ${item.start_us}`, item)
      if (this.byID.get(item.parent)?.to === item.lane && !caused.has(item.parent)) caused.set(item.parent, item)
    }
    for (const item of this.items) {
      if (item.kind !== 'message' || caused.has(item.id)) continue
      const arrived = beginnings.get(`${item.to} ${item.end_us}`)
      if (arrived && !isExchange(item)) caused.set(item.id, arrived)
    }
    return caused
  }

  lane(lane) {
    const items = this.items.filter((item) => item.lane === lane.id)
    items.sort((a, b) => a.start_us - b.start_us || a.end_us - b.end_us)
    return { ...lane, items, ...arrange(items) }
  }

  draw() {
    const focused = this.plot.contains(document.activeElement) ? this.itemOf(document.activeElement)?.id : null
    this.nodes.clear()
    this.canvas = el('div', { class: 'canvas' })
    this.axis = el('div', { class: 'axis', 'aria-hidden': 'true' })
    this.arrows = svg('svg', { class: 'arrows', 'aria-hidden': 'true' }, arrowHead())
    this.grid = svg('svg', { class: 'grid', 'aria-hidden': 'true' })
    this.canvas.append(this.axis, this.grid, ...this.lanes.map((lane) => this.drawLane(lane)), this.arrows)
    this.drawArrows()
    this.place()
    this.plot.replaceChildren(this.canvas)
    this.rove(this.byID.get(this.current) ?? this.lanes.find((lane) => lane.items.length > 0)?.items[0])
    if (focused) this.nodes.get(focused)?.focus({ preventScroll: true })
  }

  drawLane(lane) {
    lane.canBeDense = lane.rows >= denseFrom
    lane.dense = lane.canBeDense && !this.tall.has(lane.id)
    const title = el('span', { class: 'lane-name' }, lane.label)
    const size = el('span', { class: 'lane-size' }, lane.items.length > 0 ? count(lane.items.length, 'item') : 'nothing yet')
    const toggle = !lane.canBeDense ? null : el('button', {
      type: 'button', class: 'lane-toggle', 'data-lane': lane.id, 'aria-expanded': String(!lane.dense),
      'aria-label': `names in ${lane.label}`, onclick: () => this.toggle(lane),
    }, 'names')
    lane.node = el('div', {
      class: `lane lane-${lane.id}${lane.dense ? ' dense' : ''}`, role: 'group', 'aria-label': `${lane.label}, ${count(lane.items.length, 'item')}`,
    }, el('div', { class: 'lane-head' }, title, size, toggle))
    for (const item of lane.items) lane.node.append(this.drawBar(item))
    return lane.node
  }

  drawBar(item) {
    const node = el('button', {
      type: 'button', class: `bar ${item.kind}${failed(item) ? ' failed' : ''}`, tabindex: '-1',
      'data-item': item.id, 'aria-label': this.describe(item),
    }, el('span', { class: 'name', 'aria-hidden': 'true' }, title(item)))
    this.nodes.set(item.id, node)
    return node
  }

  // drawArrows makes the arrows of the messages: to what each caused, and back when there is an answer.
  drawArrows() {
    this.arrowsOf = new Map()
    for (const item of this.items) {
      const caused = this.caused.get(item.id)
      if (item.kind !== 'message' || (!caused && !isExchange(item))) continue
      const there = isExchange(item) ? item.start_us : item.end_us
      const ways = [{ caused, sent: there, received: caused?.start_us ?? there, node: this.arrow(item, 'marker-end') }]
      if (isExchange(item) && caused) {
        ways.push({ caused, sent: item.end_us, received: caused.end_us, node: this.arrow(item, 'marker-start') })
      }
      this.arrowsOf.set(item, ways)
    }
    this.arrows.classList.toggle('many', this.arrowsOf.size >= manyArrows)
  }

  arrow(item, end) {
    const node = svg('path', { class: `arrow lane-${item.lane}${failed(item) ? ' failed' : ''}`, [end]: 'url(#head)' })
    this.arrows.append(node)
    return node
  }

  // light shows the arrows of an item, and no others, as those that are looked at.
  light(item) {
    for (const node of this.arrows?.querySelectorAll('.lit') ?? []) node.classList.remove('lit')
    const message = this.arrowsOf?.has(item) ? item : this.byID?.get(item?.parent)
    for (const { node } of this.arrowsOf?.get(message) ?? []) node.classList.add('lit')
  }

  // describe is what a screen reader says of an item.
  describe(item) {
    const where = item.kind === 'message' ? `${this.label(item.lane)} to ${this.label(item.to)}` : this.label(item.lane)
    const took = item.end_us > item.start_us ? `, took ${time(item.end_us - item.start_us)}` : ''
    return `${title(item)}, ${where}, at ${time(item.start_us)}${took}${failed(item) ? ', failed' : ''}`
  }

  label(id) {
    return this.run.lanes.find((lane) => lane.id === id)?.label ?? id
  }

  // place puts everything where the present scale has it.
  place() {
    if (!this.run) return
    const parts = stretches(this.items, this.end, this.shorten)
    const room = Math.max(200, this.plot.clientWidth - 2 * margin)
    const fit = Scale.fitting(parts, room)
    this.least = fit.pixelsPerUs
    this.scale = this.fitted ? fit : new Scale(parts, Math.min(Math.max(this.scale.pixelsPerUs, fit.pixelsPerUs), most / this.end))
    const width = Math.round(this.scale.width + 2 * margin)
    this.canvas.style.width = `${Math.max(width, this.plot.clientWidth)}px`
    this.drawAxis()
    this.chooseLowRow()
    let top = axisHeight
    for (const lane of this.lanes) {
      lane.top = top
      top += this.placeLane(lane)
    }
    for (const node of [this.grid, this.arrows]) {
      node.setAttribute('width', width)
      node.setAttribute('height', top)
    }
    this.placeArrows()
    this.drawGrid(top)
  }

  // chooseLowRow makes the rows of dense lanes as low as it takes to show all lanes at once.
  chooseLowRow() {
    const rows = (lanes) => lanes.reduce((sum, lane) => sum + lane.rows, 0)
    const dense = this.lanes.filter((lane) => lane.dense)
    const taken = axisHeight + this.lanes.length * (head + lanePad) + rows(this.lanes.filter((lane) => !lane.dense)) * rowHeight
    const room = Math.floor((this.plot.clientHeight - taken) / Math.max(1, rows(dense)))
    this.lowRow = Math.min(Math.max(room, lowRow.least), lowRow.most)
  }

  rowOf(lane) {
    return lane.dense ? this.lowRow : rowHeight
  }

  x(us) {
    return margin + this.scale.x(us)
  }

  placeLane(lane) {
    const height = this.rowOf(lane)
    const rows = Array.from({ length: lane.rows }, () => [])
    for (const [item, row] of lane.of) rows[row].push(item)
    for (const [row, items] of rows.entries()) {
      items.sort((a, b) => a.start_us - b.start_us)
      for (const [i, item] of items.entries()) {
        const style = this.nodes.get(item.id).style
        const x = this.x(item.start_us)
        const width = item.kind === 'mark' && item.end_us === item.start_us ? 0 : this.x(item.end_us) - x
        style.transform = `translate(${x.toFixed(1)}px, ${head + row * height}px)`
        style.height = `${height - (lane.dense ? 1 : 2)}px`
        style.width = `${Math.max(3, width).toFixed(1)}px`
        const next = items[i + 1]
        this.placeName(lane, item, width, (next ? this.x(next.start_us) : this.scale.width + 2 * margin) - x)
      }
    }
    const total = head + lane.rows * height + lanePad
    lane.node.style.height = `${total}px`
    return total
  }

  // placeName shows an item's name inside it, else beside it where there is room until the next item, else not.
  placeName(lane, item, width, room) {
    const node = this.nodes.get(item.id)
    const inside = item.kind !== 'mark' && width >= 44
    const beside = room - Math.max(width, item.kind === 'mark' ? 8 : 3)
    node.classList.toggle('beside', !inside && beside >= 44)
    node.classList.toggle('nameless', !inside && beside < 44)
    node.firstChild.style.maxWidth = inside ? '' : `${Math.max(0, beside - 8).toFixed(0)}px`
  }

  placeArrows() {
    const lanes = new Map(this.lanes.map((lane) => [lane.id, lane]))
    for (const [item, ways] of this.arrowsOf) {
      const from = lanes.get(item.lane)
      const to = lanes.get(item.to)
      if (!from || !to) continue
      const down = from.top < to.top
      for (const { caused, sent, received, node } of ways) {
        const start = `${this.x(sent).toFixed(1)} ${this.y(from, item, down)}`
        node.setAttribute('d', `M${start}L${this.x(received).toFixed(1)} ${this.y(to, caused, !down)}`)
      }
    }
  }

  // y is the lower or upper edge of an item, or of the top of its lane.
  y(lane, item, lower) {
    const height = this.rowOf(lane)
    return lane.top + head + (lane.of.get(item) ?? 0) * height + (lower ? height - 1 : 0)
  }

  drawAxis() {
    const quiet = this.scale.parts.filter((part) => part.quiet)
    const free = ({ x }) => x + tickWidth < this.scale.width + margin && quiet.every((part) => x + tickWidth < part.x || x > part.x + part.width)
    const names = this.scale.ticks(90).filter(free).map(({ us, x }) => placed(el('span', { class: 'tick' }, time(Math.round(us))), x + margin))
    const idle = quiet.map((part) => placed(el('span', { class: 'quiet', title: 'Nothing begins or ends here.' }, time(part.to - part.from)), part.x + margin))
    this.axis.replaceChildren(...names, ...idle, ...this.flags())
  }

  // flags are the numbers of the steps; those that would cover one another share one.
  flags() {
    const groups = []
    for (const [i, step] of (this.run.steps ?? []).entries()) {
      const x = this.x(step.at_us)
      const last = groups.at(-1)
      if (last && x - last.x < flagWidth) last.to = i + 1
      else groups.push({ x, from: i + 1, to: i + 1 })
    }
    return groups.map(({ x, from, to }) => placed(el('span', { class: 'flag' }, from === to ? `${from}` : `${from}–${to}`), x))
  }

  drawGrid(height) {
    const lines = this.scale.ticks(90).map(({ x }) => line('tick-line', x + margin, height))
    const steps = (this.run.steps ?? []).map((step) => line('step-line', this.x(step.at_us), height))
    const quiet = this.scale.parts.filter((part) => part.quiet).map((part) =>
      svg('rect', { class: 'quiet-band', x: part.x + margin, y: 0, width: part.width, height }))
    this.grid.replaceChildren(...quiet, ...lines, ...steps)
  }

  toggle(lane) {
    if (!this.tall.delete(lane.id)) this.tall.add(lane.id)
    this.draw()
    this.plot.querySelector(`[data-lane="${CSS.escape(lane.id)}"]`)?.focus({ preventScroll: true })
  }

  // zoom makes the time so many times as wide, and keeps the time at a place of the region (pixels) where it is.
  zoom(times, at = this.plot.clientWidth / 2) {
    if (!this.run) return
    const us = this.scale.us(this.plot.scrollLeft + at - margin)
    const wanted = Math.min(this.scale.pixelsPerUs * times, most / this.end)
    this.fitted = wanted <= this.least
    this.scale.pixelsPerUs = wanted
    this.place()
    this.plot.scrollLeft = this.x(us) - at
  }

  fit() {
    this.fitted = true
    this.place()
  }

  setShorten(shorten) {
    this.shorten = shorten
    this.place()
  }

  // reveal scrolls to a time.
  reveal(us) {
    if (this.run) this.plot.scrollLeft = this.x(us) - this.plot.clientWidth / 3
  }

  // focus moves to an item, by its id.
  focus(id) {
    const item = this.byID?.get(id)
    if (!item) return
    this.rove(item)
    const node = this.nodes.get(id)
    node.focus({ preventScroll: true })
    this.scrollTo(item)
  }

  // mark shows which item is open.
  markOpen(id) {
    for (const node of this.plot.querySelectorAll('[aria-current]')) node.removeAttribute('aria-current')
    this.nodes.get(id)?.setAttribute('aria-current', 'true')
  }

  scrollTo(item) {
    const lane = this.lanes.find((l) => l.id === item.lane)
    const left = this.x(item.start_us)
    const top = lane.top + head + (lane.of.get(item) ?? 0) * this.rowOf(lane)
    const { scrollLeft, scrollTop, clientWidth, clientHeight } = this.plot
    if (left < scrollLeft + 20 || left > scrollLeft + clientWidth - 60) this.plot.scrollLeft = left - clientWidth / 3
    if (top < scrollTop + 40 + head || top > scrollTop + clientHeight - 30) this.plot.scrollTop = top - clientHeight / 2
  }

  choose(item) {
    this.rove(item)
    this.open(item)
  }

  itemOf(node) {
    return this.byID?.get(node?.closest?.('[data-item]')?.dataset.item) ?? null
  }

  focused(node) {
    const item = this.itemOf(node)
    if (item) this.rove(item)
    this.look(item)
  }

  // look tells of the item under the pointer or in focus.
  look(item) {
    const told = item ?? this.itemOf(document.activeElement)
    this.light(told)
    this.hint(told)
  }

  // rove makes an item the one that Tab comes to.
  rove(item) {
    if (!item) return
    this.nodes.get(this.current)?.setAttribute('tabindex', '-1')
    this.current = item.id
    this.nodes.get(item.id)?.setAttribute('tabindex', '0')
  }

  wheel(event) {
    if (!event.ctrlKey) return
    event.preventDefault()
    this.zoom(event.deltaY < 0 ? 1.25 : 0.8, event.clientX - this.plot.getBoundingClientRect().left)
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return
    const zoom = { '+': 1.5, '=': 1.5, '-': 1 / 1.5 }[event.key]
    const item = this.itemOf(event.target)
    if (zoom) this.zoom(zoom, item ? this.x(item.start_us) - this.plot.scrollLeft : undefined)
    else if (event.key === '0') this.fit()
    else if (item && this.next(item, event.key)) this.focus(this.next(item, event.key).id)
    else return
    event.preventDefault()
  }

  // next is the item that a key leads to: along the lane, or in a lane above or below. There it is what caused the item or was
  // caused by it, else the nearest in time.
  next(item, key) {
    const at = this.lanes.findIndex((lane) => lane.id === item.lane)
    const { items } = this.lanes[at]
    const along = { ArrowLeft: items.indexOf(item) - 1, ArrowRight: items.indexOf(item) + 1, Home: 0, End: items.length - 1 }[key]
    if (along !== undefined) return items[along]
    const lanes = { ArrowUp: this.lanes.slice(0, at).reverse(), ArrowDown: this.lanes.slice(at + 1) }[key] ?? []
    const causes = this.causes(item)
    for (const lane of lanes) {
      const related = lane.items.find((other) => causes.has(other.id) || this.causes(other).has(item.id))
      if (related) return related
    }
    const distance = (other) => Math.abs(other.start_us - item.start_us)
    return lanes.find((lane) => lane.items.length > 0)?.items.reduce((best, other) => (distance(other) < distance(best) ? other : best))
  }

  // causes are the ids of what an item is part of, directly or not.
  causes(item) {
    const ids = new Set()
    for (let id = item.parent; this.byID.has(id) && !ids.has(id); id = this.byID.get(id).parent) ids.add(id)
    return ids
  }

  // neighbour is the item before or after another in the order of time, over all lanes.
  neighbour(id, by) {
    const sorted = [...this.items].sort((a, b) => a.start_us - b.start_us)
    return sorted[sorted.findIndex((item) => item.id === id) + by]
  }
}

export function failed(item) {
  return item.ok === false
}

function placed(node, x) {
  node.style.transform = `translateX(${x.toFixed(1)}px)`
  return node
}

function line(name, x, height) {
  return svg('line', { class: name, x1: x.toFixed(1), x2: x.toFixed(1), y1: 0, y2: height })
}

function arrowHead() {
  return svg('defs', {}, svg('marker', {
    id: 'head', viewBox: '0 0 6 6', refX: 6, refY: 3, markerWidth: 6, markerHeight: 6, orient: 'auto-start-reverse', markerUnits: 'userSpaceOnUse',
  }, svg('path', { d: 'M0 0L6 3L0 6z' })))
}

// isExchange tells whether a message is a request with its answer, not something that is only handed on.
function isExchange(item) {
  return Boolean(item.request || item.response)
}

// title is what a bar shows: of a message also whose it is, or that it waits to be taken.
function title(item) {
  if (item.kind !== 'message') return item.name
  if (!isExchange(item)) return `waits: ${item.name}`
  return item.group ? `${item.group}: ${item.name}` : item.name
}
