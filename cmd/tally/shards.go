package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// parseShards reads which shards to work on, of so many: numbers and ranges such as 0,2,5-7; all of
// them where text is empty.
func parseShards(text string, of int) ([]int32, error) {
	if text == "" {
		text = fmt.Sprintf("0-%d", of-1)
	}
	var list []int32
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		from, err1 := strconv.ParseUint(first, 10, 31)
		to, err2 := strconv.ParseUint(last, 10, 31)
		switch {
		case err1 != nil || err2 != nil || from > to:
			return nil, fmt.Errorf("--shards %s: %q is no shard or range; want such as 0,2,5-7", text, part)
		case to >= uint64(of):
			return nil, fmt.Errorf("--shards %s: there are shards 0 to %d (shards: %d)", text, of-1, of)
		}
		for shard := from; shard <= to; shard++ {
			list = append(list, int32(shard))
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}
