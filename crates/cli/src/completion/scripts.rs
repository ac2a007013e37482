//! The scripts with which shells request completions from the program.
//!
//! If the shell knows the name by which the program was typed, it uses that name, so the program need not be on the
//! path.

use clap_complete::Shell;

use super::{VARIABLE, completer};

const BASH: &str = r#"_amplifier_sessions() {
    local program=${1:-${COMP_WORDS[0]}} current=${2-${COMP_WORDS[COMP_CWORD]}} line
    local words=("${COMP_WORDS[@]:0:COMP_CWORD}")
    program=${program/#\~/$HOME}
    command -v "$program" >/dev/null || program=COMPLETER
    # Bash has taken words apart at these.
    [[ -z $current && ${COMP_WORDS[COMP_CWORD]} == [:=]* ]] && words+=("${COMP_WORDS[COMP_CWORD]}")
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("$line")
    done < <(VARIABLE=bash "$program" -- "${words[@]}" "$current" 2>/dev/null)
    if [[ ${COMPREPLY[0]-} == :files ]]; then
        COMPREPLY=()
        while IFS= read -r line; do
            COMPREPLY+=("$line")
        done < <(compgen -f -- "$current")
        compopt -o filenames 2>/dev/null
    fi
    return 0
}
complete -F _amplifier_sessions amplifier-sessions
"#;

const ZSH: &str = r#"#compdef amplifier-sessions
_amplifier_sessions() {
    local program=${(Q)words[1]} line
    local -a lines values shown
    program=${program/#\~\//$HOME/}
    whence -- "$program" >/dev/null || program=COMPLETER
    lines=("${(@f)$(VARIABLE=zsh "$program" -- "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    if [[ ${lines[1]} == :files ]]; then
        _files
        return
    fi
    for line in "${lines[@]}"; do
        [[ -n $line ]] || continue
        values+=("${line%%$'\t'*}")
        shown+=("${line/$'\t'/  -- }")
    done
    (( $#values )) || return 1
    if [[ "${lines[*]}" == *$'\t'* ]]; then
        compadd -l -V amplifier-sessions -d shown -a values
    else
        compadd -V amplifier-sessions -a values
    fi
}
if [[ ${funcstack[1]-} == _amplifier_sessions ]]; then
    _amplifier_sessions "$@"
else
    compdef _amplifier_sessions amplifier-sessions
fi
"#;

const FISH: &str = r#"function __amplifier_sessions_complete
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    set -l current (commandline --current-token --cut-at-cursor)
    set -l program COMPLETER
    command -q -- "$words[1]"; and set program $words[1]
    set -l lines (env VARIABLE=fish $program -- $words "$current" 2>/dev/null)
    if test "$lines[1]" = :files
        __fish_complete_path "$current"
    else if set -q lines[1]
        printf '%s\n' $lines
    end
end
complete --keep-order --no-files --command amplifier-sessions --arguments '(__amplifier_sessions_complete)'
"#;

const POWERSHELL: &str = r#"Register-ArgumentCompleter -Native -CommandName 'amplifier-sessions' -ScriptBlock {
    param($word, $command, $position)
    $words = @($command.CommandElements | ForEach-Object { $_.Extent.Text })
    if ($word) { $words = @($words | Select-Object -SkipLast 1) } else { $word = ':empty' }
    $env:VARIABLE = 'powershell'
    try {
        & COMPLETER '--' @words $word 2>$null | Where-Object { $_ -ne ':files' } | ForEach-Object {
            $value, $help = $_ -split "`t", 2
            if (-not $help) { $help = $value }
            [System.Management.Automation.CompletionResult]::new($value, $value, 'ParameterValue', $help)
        }
    } finally {
        Remove-Item Env:VARIABLE
    }
}
"#;

const ELVISH: &str = r#"set edit:completion:arg-completer[amplifier-sessions] = {|@words|
    env VARIABLE=elvish COMPLETER -- $@words 2>/dev/null | from-lines
}
"#;

/// The script for a shell; `None` if the shell is not supported.
pub(crate) fn script(shell: Shell) -> Option<String> {
    let (script, quote): (_, fn(&str) -> String) = match shell {
        Shell::Bash => (BASH, posix),
        Shell::Zsh => (ZSH, posix),
        Shell::Fish => (FISH, |path| format!("'{}'", path.replace('\\', r"\\").replace('\'', r"\'"))),
        Shell::PowerShell => (POWERSHELL, doubled),
        Shell::Elvish => (ELVISH, doubled),
        _ => return None,
    };
    Some(script.replace("COMPLETER", &quote(&completer())).replace("VARIABLE", VARIABLE))
}

fn posix(path: &str) -> String {
    format!("'{}'", path.replace('\'', r"'\''"))
}

fn doubled(path: &str) -> String {
    format!("'{}'", path.replace('\'', "''"))
}
