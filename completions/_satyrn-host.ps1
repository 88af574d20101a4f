
using namespace System.Management.Automation
using namespace System.Management.Automation.Language

Register-ArgumentCompleter -Native -CommandName 'satyrn-host' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    $commandElements = $commandAst.CommandElements
    $command = @(
        'satyrn-host'
        for ($i = 1; $i -lt $commandElements.Count; $i++) {
            $element = $commandElements[$i]
            if ($element -isnot [StringConstantExpressionAst] -or
                $element.StringConstantType -ne [StringConstantType]::BareWord -or
                $element.Value.StartsWith('-') -or
                $element.Value -eq $wordToComplete) {
                break
        }
        $element.Value
    }) -join ';'

    $completions = @(switch ($command) {
        'satyrn-host' {
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('implement', 'implement', [CompletionResultType]::ParameterValue, 'Have a contract judged by an engine and print one line')
            [CompletionResult]::new('drill', 'drill', [CompletionResultType]::ParameterValue, 'Run scripted engines that fail in known ways, and see that the host takes each as it must')
            [CompletionResult]::new('conform', 'conform', [CompletionResultType]::ParameterValue, 'Try an engine on every case of the protocol, and see whether a host will understand it')
            [CompletionResult]::new('doctor', 'doctor', [CompletionResultType]::ParameterValue, 'Say which engine would run here and why, and try it once; all that a bug report needs')
            [CompletionResult]::new('schema', 'schema', [CompletionResultType]::ParameterValue, 'Print the JSON Schema of what is read, a drill file for one, or of what is printed as JSON')
            [CompletionResult]::new('completions', 'completions', [CompletionResultType]::ParameterValue, 'Print a shell''s completions')
            [CompletionResult]::new('man', 'man', [CompletionResultType]::ParameterValue, 'Print a man page')
            [CompletionResult]::new('protocol', 'protocol', [CompletionResultType]::ParameterValue, 'Serve the engine''s protocol: one JSON request on stdin, one JSON response on stdout')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'satyrn-host;implement' {
            [CompletionResult]::new('--repo', '--repo', [CompletionResultType]::ParameterName, 'The repository the contract speaks of [default: the working directory]')
            [CompletionResult]::new('--engine', '--engine', [CompletionResultType]::ParameterName, 'Run `PROGRAM protocol` as the engine; a path, not a bare name')
            [CompletionResult]::new('--engine-repo', '--engine-repo', [CompletionResultType]::ParameterName, 'Run `uv run --project DIR satyrn-engine protocol` as the engine')
            [CompletionResult]::new('--drill', '--drill', [CompletionResultType]::ParameterName, 'Run a drill as the engine: one that fails as its script says')
            [CompletionResult]::new('--deadline', '--deadline', [CompletionResultType]::ParameterName, 'How long the whole exchange may take: 500ms, 30s, 2m; at most 24h [default: 30s]')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'Print the line, or a JSON report')
            [CompletionResult]::new('--env', '--env', [CompletionResultType]::ParameterName, 'Pass one more variable to the engine; NAME=REASON where it loads code or carries a secret')
            [CompletionResult]::new('--inherit-env', '--inherit-env', [CompletionResultType]::ParameterName, 'Pass the whole environment to the engine')
            [CompletionResult]::new('--leash', '--leash', [CompletionResultType]::ParameterName, 'Cancel when the host''s own stdin ends')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Say on stderr what is done; twice for more')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Say on stderr what is done; twice for more')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'satyrn-host;drill' {
            [CompletionResult]::new('--show', '--show', [CompletionResultType]::ParameterName, 'Print the file of a built-in drill')
            [CompletionResult]::new('--filter', '--filter', [CompletionResultType]::ParameterName, 'Only those drills whose name contains this text')
            [CompletionResult]::new('--jobs', '--jobs', [CompletionResultType]::ParameterName, 'How many drills run at once [default: the number of cores]')
            [CompletionResult]::new('--repeat', '--repeat', [CompletionResultType]::ParameterName, 'Run each drill so many times')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'How the results are printed')
            [CompletionResult]::new('--list', '--list', [CompletionResultType]::ParameterName, 'Print the names of the chosen drills, one a line, and run none')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'satyrn-host;conform' {
            [CompletionResult]::new('--engine', '--engine', [CompletionResultType]::ParameterName, 'Try `PROGRAM protocol`; a path, not a bare name [default: the embedded engine]')
            [CompletionResult]::new('--engine-repo', '--engine-repo', [CompletionResultType]::ParameterName, 'Try `uv run --project DIR satyrn-engine protocol`')
            [CompletionResult]::new('--deadline', '--deadline', [CompletionResultType]::ParameterName, 'How long each case may take: 500ms, 30s, 2m; at most 24h [default: 30s]')
            [CompletionResult]::new('--filter', '--filter', [CompletionResultType]::ParameterName, 'Only those cases whose name contains this text')
            [CompletionResult]::new('--jobs', '--jobs', [CompletionResultType]::ParameterName, 'How many cases run at once [default: the number of cores]')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'How the results are printed')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'satyrn-host;doctor' {
            [CompletionResult]::new('--engine', '--engine', [CompletionResultType]::ParameterName, 'Run `PROGRAM protocol` as the engine; a path, not a bare name')
            [CompletionResult]::new('--engine-repo', '--engine-repo', [CompletionResultType]::ParameterName, 'Run `uv run --project DIR satyrn-engine protocol` as the engine')
            [CompletionResult]::new('--drill', '--drill', [CompletionResultType]::ParameterName, 'Run a drill as the engine: one that fails as its script says')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'Print a text, or a JSON object')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'satyrn-host;schema' {
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'satyrn-host;completions' {
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'satyrn-host;man' {
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'satyrn-host;protocol' {
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'satyrn-host;help' {
            [CompletionResult]::new('implement', 'implement', [CompletionResultType]::ParameterValue, 'Have a contract judged by an engine and print one line')
            [CompletionResult]::new('drill', 'drill', [CompletionResultType]::ParameterValue, 'Run scripted engines that fail in known ways, and see that the host takes each as it must')
            [CompletionResult]::new('conform', 'conform', [CompletionResultType]::ParameterValue, 'Try an engine on every case of the protocol, and see whether a host will understand it')
            [CompletionResult]::new('doctor', 'doctor', [CompletionResultType]::ParameterValue, 'Say which engine would run here and why, and try it once; all that a bug report needs')
            [CompletionResult]::new('schema', 'schema', [CompletionResultType]::ParameterValue, 'Print the JSON Schema of what is read, a drill file for one, or of what is printed as JSON')
            [CompletionResult]::new('completions', 'completions', [CompletionResultType]::ParameterValue, 'Print a shell''s completions')
            [CompletionResult]::new('man', 'man', [CompletionResultType]::ParameterValue, 'Print a man page')
            [CompletionResult]::new('protocol', 'protocol', [CompletionResultType]::ParameterValue, 'Serve the engine''s protocol: one JSON request on stdin, one JSON response on stdout')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'satyrn-host;help;implement' {
            break
        }
        'satyrn-host;help;drill' {
            break
        }
        'satyrn-host;help;conform' {
            break
        }
        'satyrn-host;help;doctor' {
            break
        }
        'satyrn-host;help;schema' {
            break
        }
        'satyrn-host;help;completions' {
            break
        }
        'satyrn-host;help;man' {
            break
        }
        'satyrn-host;help;protocol' {
            break
        }
        'satyrn-host;help;help' {
            break
        }
    })

    $completions.Where{ $_.CompletionText -like "$wordToComplete*" } |
        Sort-Object -Property ListItemText
}
