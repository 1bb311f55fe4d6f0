// The arrows of the messages: one to what a message caused, and one back when it has an answer. They are for the eye: the bar of a
// message says the same to a screen reader.
import { svg } from './dom.js'
import { failed, isExchange } from './items.js'

const many = 60 // messages, from which on the arrows are drawn faintly

export class Arrows {
  constructor(items, caused) {
    this.node = svg('svg', { class: 'arrows', 'aria-hidden': 'true' }, head())
    this.of = new Map() // message → its arrows
    for (const item of items) {
      if (item.kind === 'message') this.add(item, caused.get(item.id))
    }
    this.node.classList.toggle('many', this.of.size >= many)
  }

  add(item, caused) {
    const exchange = isExchange(item)
    if (!exchange && !caused) return
    const sent = exchange ? item.start_us : item.end_us
    const ways = [{ caused, sent, received: caused?.start_us ?? sent, path: this.path(item, 'marker-end') }]
    if (exchange && caused) ways.push({ caused, sent: item.end_us, received: caused.end_us, path: this.path(item, 'marker-start') })
    this.of.set(item, ways)
  }

  path(item, end) {
    const path = svg('path', { class: `arrow lane-${item.lane}${failed(item) ? ' failed' : ''}`, [end]: 'url(#head)' })
    this.node.append(path)
    return path
  }

  // place draws the arrows: x is where a time is, y the lower or upper edge of an item in a lane, or that of the lane.
  place(lanes, x, y) {
    const byID = new Map(lanes.map((lane) => [lane.id, lane]))
    for (const [item, ways] of this.of) {
      const from = byID.get(item.lane)
      const to = byID.get(item.to)
      if (!to) continue
      const down = from.top < to.top
      for (const { caused, sent, received, path } of ways) {
        path.setAttribute('d', `M${x(sent).toFixed(1)} ${y(from, item, down)}L${x(received).toFixed(1)} ${y(to, caused, !down)}`)
      }
    }
  }

  // light shows the arrows of a message, and no others, as those that are looked at.
  light(message) {
    for (const path of this.node.querySelectorAll('.lit')) path.classList.remove('lit')
    for (const { path } of this.of.get(message) ?? []) path.classList.add('lit')
  }
}

function head() {
  return svg('defs', {}, svg('marker', {
    id: 'head', viewBox: '0 0 6 6', refX: 6, refY: 3, markerWidth: 6, markerHeight: 6, orient: 'auto-start-reverse', markerUnits: 'userSpaceOnUse',
  }, svg('path', { d: 'M0 0L6 3L0 6z' })))
}
