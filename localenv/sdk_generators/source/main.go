// Command sdkgenerators answers the engine's `pulumi package gen-sdk` for Go, Node.js and Python.
//
// The language hosts that Pulumi's installers bring do more, and are in no registry of modules. Their code generators
// are: they are packages of the engine's own module, and are run here, behind the same protocol. The engine looks for
// `pulumi-language-<language>`; the name by which this program is started says which generator answers.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	gogen "github.com/pulumi/pulumi/pkg/v3/codegen/go"
	"github.com/pulumi/pulumi/pkg/v3/codegen/nodejs"
	"github.com/pulumi/pulumi/pkg/v3/codegen/python"
	"github.com/pulumi/pulumi/pkg/v3/codegen/schema"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
)

const prefix = "pulumi-language-"

// What the generated files name as their maker.
const tool = "pulumi-language-generators"

type host struct {
	pulumirpc.UnimplementedLanguageRuntimeServer
	language string
}

func (h *host) Handshake(
	context.Context, *pulumirpc.LanguageHandshakeRequest,
) (*pulumirpc.LanguageHandshakeResponse, error) {
	return &pulumirpc.LanguageHandshakeResponse{}, nil
}

func (h *host) GetPluginInfo(context.Context, *emptypb.Empty) (*pulumirpc.PluginInfo, error) {
	return &pulumirpc.PluginInfo{Version: "0.0.0"}, nil
}

func (h *host) GeneratePackage(
	_ context.Context, request *pulumirpc.GeneratePackageRequest,
) (*pulumirpc.GeneratePackageResponse, error) {
	loader, err := schema.NewLoaderClient(request.LoaderTarget)
	if err != nil {
		return nil, err
	}
	defer loader.Close()
	var spec schema.PackageSpec
	if err := json.Unmarshal([]byte(request.Schema), &spec); err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	pkg, problems, err := schema.BindSpec(spec, loader, schema.ValidationOptions{})
	if err != nil {
		return nil, err
	}
	if problems.HasErrors() {
		return nil, fmt.Errorf("the schema is not valid: %w", problems)
	}
	files, err := h.generate(pkg, request, loader)
	if err != nil {
		return nil, err
	}
	return &pulumirpc.GeneratePackageResponse{}, write(request.Directory, files)
}

func (h *host) generate(
	pkg *schema.Package, request *pulumirpc.GeneratePackageRequest, loader schema.ReferenceLoader,
) (map[string][]byte, error) {
	switch h.language {
	case "go":
		return gogen.GeneratePackage(tool, pkg, request.LocalDependencies)
	case "nodejs":
		return nodejs.GeneratePackage(
			tool, pkg, request.ExtraFiles, request.LocalDependencies, request.Local, loader)
	case "python":
		return python.GeneratePackage(tool, pkg, request.ExtraFiles, loader)
	default:
		return nil, fmt.Errorf("there is no generator for %s", h.language)
	}
}

func write(folder string, files map[string][]byte) error {
	for name, content := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	language := strings.TrimPrefix(filepath.Base(os.Args[0]), prefix)
	served, err := rpcutil.ServeWithOptions(rpcutil.ServeOptions{
		Init: func(server *grpc.Server) error {
			pulumirpc.RegisterLanguageRuntimeServer(server, &host{language: language})
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
