package mcpproxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// The server starts with the first request that needs it.
func ExampleProxy_Call() {
	proxy := mcpproxy.New(config.Config{Servers: []config.Server{
		{Name: "calendar", Alias: "calendar", Command: "calendar", Args: []string{"week.ics"}},
	}}, mcpproxy.Options{})
	defer func() { _ = proxy.Close() }()
	result, err := proxy.Call(context.Background(), mcpproxy.CallRequest{
		Server: "calendar", Tool: "list_events", Arguments: json.RawMessage(`{"day": "monday"}`),
		Run: policy.None().NewRun(),
	})
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Printf("%s\n", result.JSON)
}

func ExampleProxy_Servers() {
	proxy := mcpproxy.New(config.Config{Servers: []config.Server{
		{Name: "my-calendar", Alias: "my_calendar", Command: "calendar"},
	}}, mcpproxy.Options{})
	defer func() { _ = proxy.Close() }()
	for _, s := range proxy.Servers() {
		fmt.Println(s.Name, s.Alias)
	}
	// Output: my-calendar my_calendar
}
