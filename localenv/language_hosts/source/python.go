package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pulumi/pulumi/pkg/v3/codegen/python"
	"github.com/pulumi/pulumi/pkg/v3/codegen/schema"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"github.com/pulumi/pulumi/sdk/v3/python/toolchain"
)

// Runs a program in the environment that was made for it; part of the SDK's module, beside this program.
const executor = "pulumi-language-python-exec"

// By which the executor says that it has told the user already what is wrong.
const told = 32

// Lists the distributions of an environment that carry a pulumi-plugin.json.
const plugins = `
import importlib.metadata, json, pathlib, re
found = []
for each in importlib.metadata.distributions():
    name = each.metadata["Name"]
    origin = json.loads(each.read_text("direct_url.json") or "{}")
    folder = re.sub(r"[-.]+", "_", name)
    places = [pathlib.Path(each.locate_file(folder))]
    if origin.get("dir_info", {}).get("editable"):
        places.append(pathlib.Path(origin["url"].removeprefix("file://")) / folder)
    for place in places:
        file = place / "pulumi-plugin.json"
        if file.is_file():
            found.append({"name": name, "version": each.version, "plugin": json.loads(file.read_text())})
            break
print(json.dumps(found))
`

type pythonHost struct{ host }

// The toolchain that the options of a project or a plugin ask for.
func chain(info *pulumirpc.ProgramInfo, isPlugin bool) (toolchain.Toolchain, error) {
	options := toolchain.PythonOptions{Root: info.RootDirectory, ProgramDir: info.ProgramDirectory}
	given := info.Options.AsMap()
	options.Virtualenv, _ = given["virtualenv"].(string)
	switch given["toolchain"] {
	case nil:
	case "pip":
		options.Toolchain = toolchain.Pip
	case "uv":
		options.Toolchain = toolchain.Uv
	case "poetry":
		options.Toolchain = toolchain.Poetry
	default:
		return nil, fmt.Errorf("there is no toolchain %v", given["toolchain"])
	}
	if isPlugin && options.Virtualenv == "" && options.Toolchain != toolchain.Uv {
		options.Virtualenv = "venv"
	}
	return toolchain.ResolveToolchain(options)
}

func (h *pythonHost) InstallDependencies(
	request *pulumirpc.InstallDependenciesRequest, server pulumirpc.LanguageRuntime_InstallDependenciesServer,
) error {
	closer, stdout, stderr, err := rpcutil.MakeInstallDependenciesStreams(server, request.IsTerminal)
	if err != nil {
		return err
	}
	defer closer.Close()
	tools, err := chain(request.Info, request.IsPlugin)
	if err != nil {
		return err
	}
	ctx, folder := server.Context(), request.Info.ProgramDirectory
	if request.IsPlugin {
		// A plugin with a build backend is itself installed, and first.
		buildable, err := toolchain.IsBuildablePackage(folder)
		if err != nil {
			return err
		}
		if buildable {
			if err := tools.EnsureVenv(ctx, folder, false, true, stdout, stderr); err != nil {
				return err
			}
			command, err := tools.ModuleCommand(ctx, "pip", "install", folder)
			if err != nil {
				return err
			}
			command.Stdout, command.Stderr = stdout, stderr
			if err := command.Run(); err != nil {
				return fmt.Errorf("install %s: %w", folder, err)
			}
		}
	}
	if err := tools.InstallDependencies(ctx, folder, false, true, stdout, stderr); err != nil {
		return err
	}
	return closer.Close()
}

func (h *pythonHost) Link(ctx context.Context, request *pulumirpc.LinkRequest) (*pulumirpc.LinkResponse, error) {
	found, err := definitions(ctx, request, map[string]schema.Language{"python": python.Importer})
	if err != nil {
		return nil, err
	}
	tools, err := chain(request.Info, false)
	if err != nil {
		return nil, err
	}
	paths := map[string]string{}
	var imports strings.Builder
	for _, each := range found {
		name := python.PyPack(each.pkg.Namespace, each.pkg.Name)
		if info, ok := each.pkg.Language["python"].(python.PackageInfo); ok && info.PackageName != "" {
			name = info.PackageName
		}
		paths[name] = each.path
		fmt.Fprintf(&imports, "import %s\n", name)
	}
	if err := tools.LinkPackages(ctx, paths); err != nil {
		return nil, err
	}
	return &pulumirpc.LinkResponse{ImportInstructions: imports.String()}, nil
}

func (h *pythonHost) GetRequiredPackages(
	ctx context.Context, request *pulumirpc.GetRequiredPackagesRequest,
) (*pulumirpc.GetRequiredPackagesResponse, error) {
	tools, err := chain(request.Info, false)
	if err != nil {
		return nil, err
	}
	if err := tools.EnsureVenv(ctx, request.Info.ProgramDirectory, false, false, os.Stderr, os.Stderr); err != nil {
		return nil, err
	}
	command, err := tools.Command(ctx, "-c", plugins)
	if err != nil {
		return nil, err
	}
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages of the environment: %w", err)
	}
	var found []struct {
		Name, Version string
		Plugin        plugin.PulumiPluginJSON
	}
	if err := json.Unmarshal(output, &found); err != nil {
		return nil, fmt.Errorf("read the list of packages: %w", err)
	}
	answer := &pulumirpc.GetRequiredPackagesResponse{}
	for _, each := range found {
		if !each.Plugin.Resource {
			continue
		}
		name, version := each.Plugin.Name, each.Plugin.Version
		if name == "" {
			name = strings.TrimPrefix(each.Name, "pulumi-")
		}
		if version == "" {
			version = each.Version
		}
		answer.Packages = append(answer.Packages, &pulumirpc.PackageDependency{
			Name:    name,
			Kind:    "resource",
			Version: "v" + strings.TrimPrefix(version, "v"),
			Server:  each.Plugin.Server,
		})
	}
	return answer, nil
}

func (h *pythonHost) Run(ctx context.Context, request *pulumirpc.RunRequest) (*pulumirpc.RunResponse, error) {
	tools, err := chain(request.Info, false)
	if err != nil {
		return nil, err
	}
	if err := tools.ValidateVenv(ctx); err != nil {
		return nil, err
	}
	here, err := os.Executable()
	if err != nil {
		return nil, err
	}
	arguments := []string{filepath.Join(filepath.Dir(here), executor)}
	for _, each := range [][2]string{
		{"monitor", request.MonitorAddress},
		{"engine", h.engine},
		{"project", request.Project},
		{"root_directory", request.Info.RootDirectory},
		{"stack", request.Stack},
		{"pwd", request.Pwd},
		{"dry_run", strconv.FormatBool(request.DryRun)},
		{"parallel", strconv.Itoa(int(request.Parallel))},
		{"organization", request.Organization},
	} {
		if each[1] != "" {
			arguments = append(arguments, "--"+each[0], each[1])
		}
	}
	arguments = append(append(arguments, request.Info.EntryPoint), request.Args...)
	command, err := tools.Command(ctx, arguments...)
	if err != nil {
		return nil, err
	}
	if command.Env == nil {
		command.Env = os.Environ()
	}
	if len(request.Config) > 0 {
		config, err := json.Marshal(request.Config)
		if err != nil {
			return nil, err
		}
		command.Env = append(command.Env, "PULUMI_CONFIG="+string(config))
	}
	if len(request.ConfigSecretKeys) > 0 {
		secrets, err := json.Marshal(request.ConfigSecretKeys)
		if err != nil {
			return nil, err
		}
		command.Env = append(command.Env, "PULUMI_CONFIG_SECRET_KEYS="+string(secrets))
	}
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	return outcome(command.Run())
}

// What the engine is told of a program that ended.
func outcome(err error) (*pulumirpc.RunResponse, error) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return &pulumirpc.RunResponse{}, nil
	case errors.As(err, &exit) && exit.ExitCode() == told:
		return &pulumirpc.RunResponse{Bail: true}, nil
	default:
		return &pulumirpc.RunResponse{Error: fmt.Sprintf("the program failed: %v", err)}, nil
	}
}

func (h *pythonHost) RunPlugin(
	request *pulumirpc.RunPluginRequest, server pulumirpc.LanguageRuntime_RunPluginServer,
) error {
	tools, err := chain(request.Info, true)
	if err != nil {
		return err
	}
	command, err := tools.Command(server.Context(), append([]string{request.Info.ProgramDirectory}, request.Args...)...)
	if err != nil {
		return err
	}
	closer, stdout, stderr, err := rpcutil.MakeRunPluginStreams(server, false)
	if err != nil {
		return err
	}
	defer closer.Close()
	command.Dir, command.Stdout, command.Stderr = request.Pwd, stdout, stderr
	command.Env = append(command.Env, request.Env...)
	err = command.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return server.Send(&pulumirpc.RunPluginResponse{
			Output: &pulumirpc.RunPluginResponse_Exitcode{Exitcode: int32(exit.ExitCode())},
		})
	}
	if err != nil {
		return fmt.Errorf("run the plugin in %s: %w", request.Info.ProgramDirectory, err)
	}
	return closer.Close()
}
