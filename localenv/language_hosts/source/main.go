// Command languagehosts is what the engine starts as `pulumi-language-<language>` where Pulumi's installers have not been.
//
// The language hosts that those bring are in no registry of modules. Nearly all that they do is: the generators of SDKs
// are packages of the engine's own module, and those that make environments, install and link are packages of the SDK's.
// This program joins them behind the protocol of language hosts. The name by which it is started says for which language:
//
//	python  generates, links and installs; runs programs and plugins
//	nodejs  generates, links and installs
//	go      generates
//
// What else the engine may ask is answered as not implemented.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
)

const prefix = "pulumi-language-"

// How often this process looks whether the engine is still there.
const heartbeat = 10 * time.Second

// What every language has: its own hosts add to it.
type host struct {
	pulumirpc.UnimplementedLanguageRuntimeServer
	language string
	engine   string
}

func (h *host) Handshake(
	_ context.Context, request *pulumirpc.LanguageHandshakeRequest,
) (*pulumirpc.LanguageHandshakeResponse, error) {
	h.engine = request.EngineAddress
	return &pulumirpc.LanguageHandshakeResponse{}, nil
}

// Ends this process once the engine is gone: one that was killed ends nobody.
func watch(engine string) {
	for range time.Tick(heartbeat) {
		connection, err := net.DialTimeout("tcp", engine, heartbeat)
		if err != nil {
			os.Exit(1)
		}
		connection.Close()
	}
}

func (h *host) GetPluginInfo(context.Context, *emptypb.Empty) (*pulumirpc.PluginInfo, error) {
	return &pulumirpc.PluginInfo{Version: "0.0.0"}, nil
}

func serverOf(language, engine string) pulumirpc.LanguageRuntimeServer {
	plain := host{language: language, engine: engine}
	switch language {
	case "python":
		return &pythonHost{host: plain}
	case "nodejs":
		return &nodeHost{host: plain}
	default:
		return &plain
	}
}

func main() {
	language := strings.TrimPrefix(filepath.Base(os.Args[0]), prefix)
	// The engine's address comes last. A handshake, which would tell it too, does not come with every command.
	engine := os.Args[len(os.Args)-1]
	if len(os.Args) > 1 {
		go watch(engine)
	}
	served, err := rpcutil.ServeWithOptions(rpcutil.ServeOptions{
		Init: func(server *grpc.Server) error {
			pulumirpc.RegisterLanguageRuntimeServer(server, serverOf(language, engine))
			return nil
		},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// The engine reads the port, and ends this process when it is done.
	fmt.Println(served.Port)
	if err := <-served.Done; err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
