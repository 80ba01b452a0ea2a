package main

import (
	"testing"

	"github.com/tallystick/tallystick/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }
