package main

import (
	"fmt"
	"strings"
)

// The chart's measures in pixels.
const (
	chartLeft, chartWidth, barHeight, barGap, groupGap = 190, 420, 16, 4, 14
	chartRight                                         = 110
)

// chart draws requests a second as bars, in groups by the number of clients: baseline, place-order and replay.
func (r *report) chart() string {
	shown := []struct{ name, colour string }{
		{baselineOne, "#8c8c8c"}, {placeOne, "#2f6fbb"}, {baselineFive, "#b9b9b9"}, {placeFive, "#7fa8d8"}, {replay, "#3f9b5f"},
	}
	most := 1.0
	for _, f := range r.Figures {
		for _, s := range shown {
			if f.Name == s.name {
				most = max(most, f.PerSecond)
			}
		}
	}
	var bars strings.Builder
	y := 30
	for _, clients := range r.clients {
		fmt.Fprintf(&bars, "<text x=\"4\" y=\"%d\" font-weight=\"bold\">%d clients</text>\n", y, clients)
		y += 8
		for _, s := range shown {
			f, ok := r.figure(s.name, clients)
			if !ok {
				continue
			}
			width := int(f.PerSecond / most * chartWidth)
			fmt.Fprintf(&bars, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", chartLeft-6, y+12, s.name)
			fmt.Fprintf(&bars, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\"/>\n", chartLeft, y, width, barHeight, s.colour)
			fmt.Fprintf(&bars, "<text x=\"%d\" y=\"%d\">%.0f/s</text>\n", chartLeft+width+6, y+12, f.PerSecond)
			y += barHeight + barGap
		}
		y += groupGap
	}
	width := chartLeft + chartWidth + chartRight
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">
<title>Requests a second, medians. %s, PostgreSQL %s, %s. %s</title>
<rect width="100%%" height="100%%" fill="white"/>
<text x="4" y="12">Requests a second (median of %d rounds; %s, PostgreSQL %s, %s)</text>
%s</svg>
`, width, y, r.Machine, r.PostgreSQL, r.Date, r.Command, r.Rounds, r.Machine, r.PostgreSQL, r.Date, bars.String())
}
