package mcpproxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// The server starts with the first request that needs it.
func ExampleProxy_Prepare() {
	proxy := mcpproxy.New(config.Config{Servers: []config.Server{
		{Name: "calendar", Alias: "calendar", Command: "calendar", Args: []string{"week.ics"}},
	}}, mcpproxy.Options{})
	defer func() { _ = proxy.Close() }()
	call, err := proxy.Prepare(context.Background(), "calendar", mcpproxy.Want{Method: mcpproxy.CallTool, Name: "list_events"})
	if err != nil {
		log.Print(err)
		return
	}
	result, err := call.Send(context.Background(), json.RawMessage(`{"day":"monday"}`), nil, nil)
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
