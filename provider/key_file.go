package provider

import (
	"fmt"
	"os"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func keyFileAttribute() schema.StringAttribute {
	return schema.StringAttribute{
		Optional:   true,
		Validators: []validator.String{stringvalidator.ConflictsWith(path.MatchRoot("api_key"))},
		MarkdownDescription: "File that holds the API key, read at the start and again whenever the engine refuses the key: " +
			"a short-lived key that something else renews outlasts no apply. Instead of `api_key`; falls back to `SLUICE_API_KEY_FILE` when there is no key by other means.",
	}
}

func progressFileAttribute() schema.StringAttribute {
	return schema.StringAttribute{
		Optional: true,
		MarkdownDescription: "File to which each change of a rollout that an apply waits for is appended as one line of JSON, to follow with `tail -f`: " +
			"`time`, `rollout`, `endpoint`, `step` (from 1, null before the start), `of`, `phase`, `percent` (of the pair on the target), `state`, `next_event`, `elapsed_seconds`. " +
			"Made with mode 0600 when absent; several rollouts and processes may share it. One that cannot be written costs one warning. Falls back to `SLUICE_PROGRESS_FILE`.",
	}
}

// keySource is where the key comes from: api_key, then the file in the block, then the
// environment, a file last. renew is nil unless it is a file.
func (m providerModel) keySource(key setting, diags *diag.Diagnostics) (from setting, renew func() (string, error)) {
	file := setting{attribute: "api_key_file", value: m.APIKeyFile}
	if strings.TrimSpace(m.APIKey.ValueString()) != "" {
		return key, nil
	}
	if file.resolve() == "" {
		if key.resolve() != "" {
			return key, nil
		}
		file.env = []string{"SLUICE_API_KEY_FILE"}
	}
	name := file.resolve()
	if name == "" {
		key.env = append(key.env, file.env...)
		return key, nil
	}
	renew = func() (string, error) {
		text, err := os.ReadFile(name) //nolint:gosec // the file that the user named
		return string(text), err
	}
	text, err := renew()
	switch {
	case err != nil:
		text = name // so that nothing else is said to be missing
		diags.AddAttributeError(path.Root("api_key_file"), "The key file cannot be read", fmt.Sprintf("%v. Check api_key_file in the provider block or SLUICE_API_KEY_FILE.", err))
	case strings.TrimSpace(text) == "":
		text = name
		diags.AddAttributeError(path.Root("api_key_file"), "The key file is empty", name+" holds no key.")
	}
	return setting{attribute: "api_key_file", value: types.StringValue(text)}, renew
}

// progressFile is the file that the configuration or the environment names; nil for
// none.
func (m providerModel) progressFile() *progressFile {
	if name := (setting{"progress_file", m.ProgressFile, []string{"SLUICE_PROGRESS_FILE"}}).resolve(); name != "" {
		return &progressFile{path: name}
	}
	return nil
}
