package main

import (
	"slices"
	"testing"
)

func TestMisspelledVariablesAreNamed(t *testing.T) {
	got := settingSlips([]string{
		"MCP_BRIDGE_TIMOUT=5", "MCP_BRIDGE_TIMEOUT=5", "MCP_BRIDGE_imagE=x", "MCP_BRIDGE_ALLOWED_MCP_DIRS=/", "MCP_BRIDGE_INPUT_IMAGE=x", "TIMOUT=1", "MCP_BRIDGE_",
	})
	want := []string{
		"there is no setting MCP_BRIDGE_TIMOUT; did you mean MCP_BRIDGE_TIMEOUT?",
		"there is no setting MCP_BRIDGE_imagE; did you mean MCP_BRIDGE_IMAGE?",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
