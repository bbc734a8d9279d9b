package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/blang/semver"
	gogen "github.com/pulumi/pulumi/pkg/v3/codegen/go"
	"github.com/pulumi/pulumi/pkg/v3/codegen/nodejs"
	"github.com/pulumi/pulumi/pkg/v3/codegen/python"
	"github.com/pulumi/pulumi/pkg/v3/codegen/schema"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// What the generated files name as their maker.
const tool = "pulumi-language-hosts"

func (h *host) GeneratePackage(
	_ context.Context, request *pulumirpc.GeneratePackageRequest,
) (*pulumirpc.GeneratePackageResponse, error) {
	client, err := schema.NewLoaderClient(request.LoaderTarget)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	loader := schema.NewCachedLoader(client)
	var spec schema.PackageSpec
	if err := json.Unmarshal([]byte(request.Schema), &spec); err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	pkg, problems, err := schema.BindSpec(spec, loader, schema.ValidationOptions{AllowDanglingReferences: true})
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

// A package to link, as its generator sees it.
type linked struct {
	pkg  *schema.Package
	path string
}

// Definitions of the packages that the engine wants linked.
func definitions(
	ctx context.Context, request *pulumirpc.LinkRequest, languages map[string]schema.Language,
) ([]linked, error) {
	client, err := schema.NewLoaderClient(request.LoaderTarget)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	loader := schema.NewCachedLoader(client)
	var found []linked
	for _, wanted := range request.Packages {
		descriptor := &schema.PackageDescriptor{Name: wanted.Package.Name, DownloadURL: wanted.Package.Server}
		if version, err := semver.New(wanted.Package.Version); err == nil {
			descriptor.Version = version
		}
		reference, err := schema.LoadPackageReferenceV2(ctx, loader, descriptor)
		if err != nil {
			return nil, fmt.Errorf("load the schema of %s: %w", wanted.Package.Name, err)
		}
		pkg, err := reference.Definition()
		if err != nil {
			return nil, err
		}
		if err := pkg.ImportLanguages(languages); err != nil {
			return nil, err
		}
		found = append(found, linked{pkg: pkg, path: wanted.Path})
	}
	return found, nil
}
