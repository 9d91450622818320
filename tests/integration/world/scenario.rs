//! Scenarios that tests share.

/// "time please" calls `tools.now`, "time and time" calls it twice at once, "run" runs a process, "stall" calls
/// nothing but takes its time; everything else is echoed.
pub const USUAL: &str = r#"
rules:
  - name: time-twice
    when: { user_contains: "time and time" }
    turn:
      - tool_calls:
          - { tool: tools.now, arguments: { time_zone: "UTC" } }
          - { tool: tools.now, arguments: { time_zone: "Asia/Tokyo" } }
      - text: "{{ results | length }} clocks"
  - name: time
    when: { user_contains: "time please" }
    turn:
      - tool_calls: [{ tool: tools.now, arguments: {} }]
      - text: "It is {{ last_result.now }}."
  - name: echo
    when: {}
    reply: "You said: {{ user }}"
"#;
