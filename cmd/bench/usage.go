package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// usage is what a process has used since its start, according to its own metrics.
type usage struct {
	cpu      float64 // seconds of all cores
	objects  float64 // allocated
	bytes    float64 // allocated
	resident float64 // bytes, now
}

// minus returns the difference to an earlier usage; resident is not a difference.
func (u usage) minus(before usage) usage {
	return usage{u.cpu - before.cpu, u.objects - before.objects, u.bytes - before.bytes, u.resident}
}

// usage reads /metrics of the process. A missing figure is an error.
func (c *service) usage(ctx context.Context) (u usage, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.ops+"/metrics", nil)
	if err != nil {
		return u, fmt.Errorf("metrics of %s: %w", c.name, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return u, fmt.Errorf("metrics of %s: %w", c.name, err)
	}
	defer response.Body.Close()
	missing := map[string]*float64{
		"process_cpu_seconds_total": &u.cpu, "go_memstats_mallocs_total": &u.objects,
		"go_memstats_alloc_bytes_total": &u.bytes, "process_resident_memory_bytes": &u.resident,
	}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if into := missing[name]; into != nil {
			if *into, err = strconv.ParseFloat(value, 64); err != nil {
				return u, fmt.Errorf("metric %s: %w", name, err)
			}
			delete(missing, name)
		}
	}
	if len(missing) > 0 {
		return u, fmt.Errorf("metrics of %s: %d figures are not there", c.name, len(missing))
	}
	return u, lines.Err()
}
