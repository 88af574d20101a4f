# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_satyrn_host_global_optspecs
    string join \n h/help V/version
end

function __fish_satyrn_host_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_satyrn_host_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_satyrn_host_using_subcommand
    set -l cmd (__fish_satyrn_host_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c satyrn-host -n "__fish_satyrn_host_needs_command" -s h -l help -d 'Print help'
complete -c satyrn-host -n "__fish_satyrn_host_needs_command" -s V -l version -d 'Print version'
complete -c satyrn-host -n "__fish_satyrn_host_needs_command" -f -a "implement" -d 'Have a contract judged by an engine and print one line'
complete -c satyrn-host -n "__fish_satyrn_host_needs_command" -f -a "drill" -d 'Run scripted engines that fail in known ways, and see that the host takes each as it must'
complete -c satyrn-host -n "__fish_satyrn_host_needs_command" -f -a "conform" -d 'Try an engine on every case of the protocol, and see whether a host will understand it'
complete -c satyrn-host -n "__fish_satyrn_host_needs_command" -f -a "doctor" -d 'Say which engine would run here and why, and try it once; all that a bug report needs'
complete -c satyrn-host -n "__fish_satyrn_host_needs_command" -f -a "schema" -d 'Print the JSON Schema of what is read, a drill file for one, or of what is printed as JSON'
complete -c satyrn-host -n "__fish_satyrn_host_needs_command" -f -a "completions" -d 'Print a shell\'s completions'
complete -c satyrn-host -n "__fish_satyrn_host_needs_command" -f -a "man" -d 'Print a man page'
complete -c satyrn-host -n "__fish_satyrn_host_needs_command" -f -a "protocol" -d 'Serve the engine\'s protocol: one JSON request on stdin, one JSON response on stdout'
complete -c satyrn-host -n "__fish_satyrn_host_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand implement" -l repo -d 'The repository the contract speaks of [default: the working directory]' -r -f -a "(__fish_complete_directories)"
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand implement" -l engine -d 'Run `PROGRAM protocol` as the engine; a path, not a bare name' -r -F
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand implement" -l engine-repo -d 'Run `uv run --project DIR satyrn-engine protocol` as the engine' -r -f -a "(__fish_complete_directories)"
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand implement" -l drill -d 'Run a drill as the engine: one that fails as its script says' -r -F
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand implement" -l deadline -d 'How long the whole exchange may take: 500ms, 30s, 2m; at most 24h [default: 30s]' -r
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand implement" -l format -d 'Print the line, or a JSON report' -r -f -a "line\t'One line'
json\t'One JSON object'"
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand implement" -l env -d 'Pass one more variable to the engine; NAME=REASON where it loads code or carries a secret' -r
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand implement" -l inherit-env -d 'Pass the whole environment to the engine'
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand implement" -l leash -d 'Cancel when the host\'s own stdin ends'
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand implement" -s v -l verbose -d 'Say on stderr what is done; twice for more'
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand implement" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand drill" -l show -d 'Print the file of a built-in drill' -r
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand drill" -l filter -d 'Only those drills whose name contains this text' -r
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand drill" -l jobs -d 'How many drills run at once [default: the number of cores]' -r
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand drill" -l repeat -d 'Run each drill so many times' -r
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand drill" -l format -d 'How the results are printed' -r -f -a "table\t'For people'
json\t'One JSON object'
junit\t'The XML that CI servers read'
tap\t'The Test Anything Protocol, version 14'"
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand drill" -l list -d 'Print the names of the chosen drills, one a line, and run none'
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand drill" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand conform" -l engine -d 'Try `PROGRAM protocol`; a path, not a bare name [default: the embedded engine]' -r -F
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand conform" -l engine-repo -d 'Try `uv run --project DIR satyrn-engine protocol`' -r -f -a "(__fish_complete_directories)"
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand conform" -l deadline -d 'How long each case may take: 500ms, 30s, 2m; at most 24h [default: 30s]' -r
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand conform" -l filter -d 'Only those cases whose name contains this text' -r
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand conform" -l jobs -d 'How many cases run at once [default: the number of cores]' -r
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand conform" -l format -d 'How the results are printed' -r -f -a "table\t'For people'
json\t'One JSON object'
junit\t'The XML that CI servers read'
tap\t'The Test Anything Protocol, version 14'"
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand conform" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand doctor" -l engine -d 'Run `PROGRAM protocol` as the engine; a path, not a bare name' -r -F
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand doctor" -l engine-repo -d 'Run `uv run --project DIR satyrn-engine protocol` as the engine' -r -f -a "(__fish_complete_directories)"
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand doctor" -l drill -d 'Run a drill as the engine: one that fails as its script says' -r -F
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand doctor" -l format -d 'Print a text, or a JSON object' -r -f -a "text\t'For people: one fact a line'
json\t'One JSON object'"
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand schema" -s h -l help -d 'Print help'
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand completions" -s h -l help -d 'Print help'
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand man" -s h -l help -d 'Print help'
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand protocol" -s h -l help -d 'Print help'
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand help; and not __fish_seen_subcommand_from implement drill conform doctor schema completions man protocol help" -f -a "implement" -d 'Have a contract judged by an engine and print one line'
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand help; and not __fish_seen_subcommand_from implement drill conform doctor schema completions man protocol help" -f -a "drill" -d 'Run scripted engines that fail in known ways, and see that the host takes each as it must'
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand help; and not __fish_seen_subcommand_from implement drill conform doctor schema completions man protocol help" -f -a "conform" -d 'Try an engine on every case of the protocol, and see whether a host will understand it'
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand help; and not __fish_seen_subcommand_from implement drill conform doctor schema completions man protocol help" -f -a "doctor" -d 'Say which engine would run here and why, and try it once; all that a bug report needs'
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand help; and not __fish_seen_subcommand_from implement drill conform doctor schema completions man protocol help" -f -a "schema" -d 'Print the JSON Schema of what is read, a drill file for one, or of what is printed as JSON'
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand help; and not __fish_seen_subcommand_from implement drill conform doctor schema completions man protocol help" -f -a "completions" -d 'Print a shell\'s completions'
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand help; and not __fish_seen_subcommand_from implement drill conform doctor schema completions man protocol help" -f -a "man" -d 'Print a man page'
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand help; and not __fish_seen_subcommand_from implement drill conform doctor schema completions man protocol help" -f -a "protocol" -d 'Serve the engine\'s protocol: one JSON request on stdin, one JSON response on stdout'
complete -c satyrn-host -n "__fish_satyrn_host_using_subcommand help; and not __fish_seen_subcommand_from implement drill conform doctor schema completions man protocol help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
