package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/pulumi/pulumi/pkg/v3/codegen/nodejs"
	"github.com/pulumi/pulumi/pkg/v3/codegen/schema"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
	"github.com/pulumi/pulumi/sdk/v3/nodejs/npm"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

type nodeHost struct{ host }

func (h *nodeHost) Link(ctx context.Context, request *pulumirpc.LinkRequest) (*pulumirpc.LinkResponse, error) {
	found, err := definitions(ctx, request, map[string]schema.Language{"nodejs": nodejs.Importer})
	if err != nil {
		return nil, err
	}
	folder := request.Info.ProgramDirectory
	manager, err := npm.ResolvePackageManager(npm.AutoPackageManager, folder)
	if err != nil {
		return nil, err
	}
	var imports strings.Builder
	for _, each := range found {
		name := nodeName(each.pkg)
		if err := manager.Link(ctx, folder, name, each.path); err != nil {
			return nil, err
		}
		fmt.Fprintf(&imports, "import * as %s from %q;\n", each.pkg.Name, name)
	}
	return &pulumirpc.LinkResponse{ImportInstructions: imports.String()}, nil
}

func nodeName(pkg *schema.Package) string {
	if info, ok := pkg.Language["nodejs"].(nodejs.NodePackageInfo); ok && info.PackageName != "" {
		return info.PackageName
	}
	namespace := pkg.Namespace
	if namespace == "" {
		namespace = "pulumi"
	}
	return "@" + namespace + "/" + pkg.Name
}

func (h *nodeHost) InstallDependencies(
	request *pulumirpc.InstallDependenciesRequest, server pulumirpc.LanguageRuntime_InstallDependenciesServer,
) error {
	closer, stdout, stderr, err := rpcutil.MakeInstallDependenciesStreams(server, request.IsTerminal)
	if err != nil {
		return err
	}
	defer closer.Close()
	folder := request.Info.ProgramDirectory
	if _, err := npm.Install(server.Context(), npm.AutoPackageManager, folder, false, stdout, stderr); err != nil {
		return fmt.Errorf("install what package.json in %s asks for: %w", folder, err)
	}
	return closer.Close()
}
