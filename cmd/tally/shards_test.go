package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseShards(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "[0 1 2 3 4 5 6 7]", "0-3": "[0 1 2 3]", "2": "[2]", "0,2,5-7": "[0 2 5 6 7]",
		"7, 0-1,1": "[0 1 7]", "8": "shards 0 to 7", "3-1": "no shard or range", "a": "no shard",
		"-1": "no shard", "1,": "no shard", "0-9999999999": "no shard",
	} {
		list, err := parseShards(text, 8)
		if got := fmt.Sprint(list); err == nil && got != want ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %s, %v, want %s", text, got, err, want)
		}
	}
}
