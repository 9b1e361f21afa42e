// Command sluice is one binary: the Terraform provider when Terraform starts it,
// the sluice command otherwise.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/sluice-dev/terraform-provider-sluice/internal/cli"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
	"github.com/sluice-dev/terraform-provider-sluice/provider"
)

// version is set by the release build.
var version = "0.1.0-dev"

// magicCookie is what Terraform sets for the plugins that it starts.
const magicCookie = "TF_PLUGIN_MAGIC_COOKIE"

func main() {
	if os.Getenv(magicCookie) != "" {
		err := providerserver.Serve(context.Background(), provider.New(version), providerserver.ServeOpts{Address: "registry.terraform.io/sluice-dev/sluice"})
		if err != nil {
			log.Fatal(err)
		}
		return
	}
	os.Exit(command())
}

// command runs the command line. The first signal asks it to stop in order, the
// second ends it at once.
func command() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	color := render.Plain
	if cli.Terminal(os.Stdout) && os.Getenv("NO_COLOR") == "" {
		color = render.ANSI
	}
	return cli.Run(ctx, cli.Env{Args: os.Args[1:], Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Version: version, Self: self, Color: color, Width: cli.Columns(os.Stdout), Ask: cli.AskOn(os.Stdin, os.Stderr)})
}
