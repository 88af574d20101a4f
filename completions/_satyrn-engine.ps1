
using namespace System.Management.Automation
using namespace System.Management.Automation.Language

Register-ArgumentCompleter -Native -CommandName 'satyrn-engine' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    $commandElements = $commandAst.CommandElements
    $command = @(
        'satyrn-engine'
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
        'satyrn-engine' {
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('check', 'check', [CompletionResultType]::ParameterValue, 'Judge contracts: silent and 0, or one line on stderr for each refusal and its exit code')
            [CompletionResult]::new('protocol', 'protocol', [CompletionResultType]::ParameterValue, 'Serve one JSON request on stdin with one JSON response on stdout, then exit')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'satyrn-engine;check' {
            [CompletionResult]::new('--repo', '--repo', [CompletionResultType]::ParameterName, 'The repository the contracts speak of')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'Lines on stderr for refusals, or one JSON object a contract on stdout')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Print warnings on stderr too')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Print warnings on stderr too')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'satyrn-engine;protocol' {
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help')
            break
        }
        'satyrn-engine;help' {
            [CompletionResult]::new('check', 'check', [CompletionResultType]::ParameterValue, 'Judge contracts: silent and 0, or one line on stderr for each refusal and its exit code')
            [CompletionResult]::new('protocol', 'protocol', [CompletionResultType]::ParameterValue, 'Serve one JSON request on stdin with one JSON response on stdout, then exit')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'satyrn-engine;help;check' {
            break
        }
        'satyrn-engine;help;protocol' {
            break
        }
        'satyrn-engine;help;help' {
            break
        }
    })

    $completions.Where{ $_.CompletionText -like "$wordToComplete*" } |
        Sort-Object -Property ListItemText
}
