impl serde::Serialize for AgentAction {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.action.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.AgentAction", len)?;
        if let Some(v) = self.action.as_ref() {
            match v {
                agent_action::Action::Say(v) => {
                    struct_ser.serialize_field("say", v)?;
                }
                agent_action::Action::ToolCall(v) => {
                    struct_ser.serialize_field("tool_call", v)?;
                }
            }
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for AgentAction {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "say",
            "tool_call",
            "toolCall",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Say,
            ToolCall,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "say" => Ok(GeneratedField::Say),
                            "toolCall" | "tool_call" => Ok(GeneratedField::ToolCall),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = AgentAction;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.AgentAction")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<AgentAction, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut action__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Say => {
                            if action__.is_some() {
                                return Err(serde::de::Error::duplicate_field("say"));
                            }
                            action__ = map_.next_value::<::std::option::Option<_>>()?.map(agent_action::Action::Say)
;
                        }
                        GeneratedField::ToolCall => {
                            if action__.is_some() {
                                return Err(serde::de::Error::duplicate_field("toolCall"));
                            }
                            action__ = map_.next_value::<::std::option::Option<_>>()?.map(agent_action::Action::ToolCall)
;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(AgentAction {
                    action: action__,
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.AgentAction", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for AgentApproval {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.approval_id.is_empty() {
            len += 1;
        }
        if !self.user.is_empty() {
            len += 1;
        }
        if !self.action_id.is_empty() {
            len += 1;
        }
        if !self.verdict.is_empty() {
            len += 1;
        }
        if !self.note.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.AgentApproval", len)?;
        if !self.approval_id.is_empty() {
            struct_ser.serialize_field("approval_id", &self.approval_id)?;
        }
        if !self.user.is_empty() {
            struct_ser.serialize_field("user", &self.user)?;
        }
        if !self.action_id.is_empty() {
            struct_ser.serialize_field("action_id", &self.action_id)?;
        }
        if !self.verdict.is_empty() {
            struct_ser.serialize_field("verdict", &self.verdict)?;
        }
        if !self.note.is_empty() {
            struct_ser.serialize_field("note", &self.note)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for AgentApproval {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "approval_id",
            "approvalId",
            "user",
            "action_id",
            "actionId",
            "verdict",
            "note",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            ApprovalId,
            User,
            ActionId,
            Verdict,
            Note,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "approvalId" | "approval_id" => Ok(GeneratedField::ApprovalId),
                            "user" => Ok(GeneratedField::User),
                            "actionId" | "action_id" => Ok(GeneratedField::ActionId),
                            "verdict" => Ok(GeneratedField::Verdict),
                            "note" => Ok(GeneratedField::Note),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = AgentApproval;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.AgentApproval")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<AgentApproval, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut approval_id__ = None;
                let mut user__ = None;
                let mut action_id__ = None;
                let mut verdict__ = None;
                let mut note__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::ApprovalId => {
                            if approval_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("approvalId"));
                            }
                            approval_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::User => {
                            if user__.is_some() {
                                return Err(serde::de::Error::duplicate_field("user"));
                            }
                            user__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ActionId => {
                            if action_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("actionId"));
                            }
                            action_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Verdict => {
                            if verdict__.is_some() {
                                return Err(serde::de::Error::duplicate_field("verdict"));
                            }
                            verdict__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Note => {
                            if note__.is_some() {
                                return Err(serde::de::Error::duplicate_field("note"));
                            }
                            note__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(AgentApproval {
                    approval_id: approval_id__.unwrap_or_default(),
                    user: user__.unwrap_or_default(),
                    action_id: action_id__.unwrap_or_default(),
                    verdict: verdict__.unwrap_or_default(),
                    note: note__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.AgentApproval", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for AgentChoice {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.choice_id.is_empty() {
            len += 1;
        }
        if !self.user.is_empty() {
            len += 1;
        }
        if !self.offer_id.is_empty() {
            len += 1;
        }
        if !self.option.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.AgentChoice", len)?;
        if !self.choice_id.is_empty() {
            struct_ser.serialize_field("choice_id", &self.choice_id)?;
        }
        if !self.user.is_empty() {
            struct_ser.serialize_field("user", &self.user)?;
        }
        if !self.offer_id.is_empty() {
            struct_ser.serialize_field("offer_id", &self.offer_id)?;
        }
        if !self.option.is_empty() {
            struct_ser.serialize_field("option", &self.option)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for AgentChoice {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "choice_id",
            "choiceId",
            "user",
            "offer_id",
            "offerId",
            "option",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            ChoiceId,
            User,
            OfferId,
            Option,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "choiceId" | "choice_id" => Ok(GeneratedField::ChoiceId),
                            "user" => Ok(GeneratedField::User),
                            "offerId" | "offer_id" => Ok(GeneratedField::OfferId),
                            "option" => Ok(GeneratedField::Option),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = AgentChoice;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.AgentChoice")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<AgentChoice, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut choice_id__ = None;
                let mut user__ = None;
                let mut offer_id__ = None;
                let mut option__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::ChoiceId => {
                            if choice_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("choiceId"));
                            }
                            choice_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::User => {
                            if user__.is_some() {
                                return Err(serde::de::Error::duplicate_field("user"));
                            }
                            user__ = Some(map_.next_value()?);
                        }
                        GeneratedField::OfferId => {
                            if offer_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("offerId"));
                            }
                            offer_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Option => {
                            if option__.is_some() {
                                return Err(serde::de::Error::duplicate_field("option"));
                            }
                            option__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(AgentChoice {
                    choice_id: choice_id__.unwrap_or_default(),
                    user: user__.unwrap_or_default(),
                    offer_id: offer_id__.unwrap_or_default(),
                    option: option__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.AgentChoice", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for AgentCommand {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.command_id.is_empty() {
            len += 1;
        }
        if !self.user.is_empty() {
            len += 1;
        }
        if !self.command.is_empty() {
            len += 1;
        }
        if !self.action_id.is_empty() {
            len += 1;
        }
        if !self.process_id.is_empty() {
            len += 1;
        }
        if !self.chain_id.is_empty() {
            len += 1;
        }
        if !self.task_id.is_empty() {
            len += 1;
        }
        if !self.thread_id.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.AgentCommand", len)?;
        if !self.command_id.is_empty() {
            struct_ser.serialize_field("command_id", &self.command_id)?;
        }
        if !self.user.is_empty() {
            struct_ser.serialize_field("user", &self.user)?;
        }
        if !self.command.is_empty() {
            struct_ser.serialize_field("command", &self.command)?;
        }
        if !self.action_id.is_empty() {
            struct_ser.serialize_field("action_id", &self.action_id)?;
        }
        if !self.process_id.is_empty() {
            struct_ser.serialize_field("process_id", &self.process_id)?;
        }
        if !self.chain_id.is_empty() {
            struct_ser.serialize_field("chain_id", &self.chain_id)?;
        }
        if !self.task_id.is_empty() {
            struct_ser.serialize_field("task_id", &self.task_id)?;
        }
        if !self.thread_id.is_empty() {
            struct_ser.serialize_field("thread_id", &self.thread_id)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for AgentCommand {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "command_id",
            "commandId",
            "user",
            "command",
            "action_id",
            "actionId",
            "process_id",
            "processId",
            "chain_id",
            "chainId",
            "task_id",
            "taskId",
            "thread_id",
            "threadId",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            CommandId,
            User,
            Command,
            ActionId,
            ProcessId,
            ChainId,
            TaskId,
            ThreadId,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "commandId" | "command_id" => Ok(GeneratedField::CommandId),
                            "user" => Ok(GeneratedField::User),
                            "command" => Ok(GeneratedField::Command),
                            "actionId" | "action_id" => Ok(GeneratedField::ActionId),
                            "processId" | "process_id" => Ok(GeneratedField::ProcessId),
                            "chainId" | "chain_id" => Ok(GeneratedField::ChainId),
                            "taskId" | "task_id" => Ok(GeneratedField::TaskId),
                            "threadId" | "thread_id" => Ok(GeneratedField::ThreadId),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = AgentCommand;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.AgentCommand")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<AgentCommand, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut command_id__ = None;
                let mut user__ = None;
                let mut command__ = None;
                let mut action_id__ = None;
                let mut process_id__ = None;
                let mut chain_id__ = None;
                let mut task_id__ = None;
                let mut thread_id__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::CommandId => {
                            if command_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("commandId"));
                            }
                            command_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::User => {
                            if user__.is_some() {
                                return Err(serde::de::Error::duplicate_field("user"));
                            }
                            user__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Command => {
                            if command__.is_some() {
                                return Err(serde::de::Error::duplicate_field("command"));
                            }
                            command__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ActionId => {
                            if action_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("actionId"));
                            }
                            action_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ProcessId => {
                            if process_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("processId"));
                            }
                            process_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ChainId => {
                            if chain_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("chainId"));
                            }
                            chain_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::TaskId => {
                            if task_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("taskId"));
                            }
                            task_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ThreadId => {
                            if thread_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("threadId"));
                            }
                            thread_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(AgentCommand {
                    command_id: command_id__.unwrap_or_default(),
                    user: user__.unwrap_or_default(),
                    command: command__.unwrap_or_default(),
                    action_id: action_id__.unwrap_or_default(),
                    process_id: process_id__.unwrap_or_default(),
                    chain_id: chain_id__.unwrap_or_default(),
                    task_id: task_id__.unwrap_or_default(),
                    thread_id: thread_id__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.AgentCommand", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for AgentDecision {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.cursor != 0 {
            len += 1;
        }
        if !self.input_id.is_empty() {
            len += 1;
        }
        if !self.events.is_empty() {
            len += 1;
        }
        if !self.completions.is_empty() {
            len += 1;
        }
        if self.profile_sequence != 0 {
            len += 1;
        }
        if !self.catalogue_version.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.AgentDecision", len)?;
        if self.cursor != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("cursor", ToString::to_string(&self.cursor).as_str())?;
        }
        if !self.input_id.is_empty() {
            struct_ser.serialize_field("input_id", &self.input_id)?;
        }
        if !self.events.is_empty() {
            struct_ser.serialize_field("events", &self.events)?;
        }
        if !self.completions.is_empty() {
            struct_ser.serialize_field("completions", &self.completions)?;
        }
        if self.profile_sequence != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("profile_sequence", ToString::to_string(&self.profile_sequence).as_str())?;
        }
        if !self.catalogue_version.is_empty() {
            struct_ser.serialize_field("catalogue_version", &self.catalogue_version)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for AgentDecision {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "cursor",
            "input_id",
            "inputId",
            "events",
            "completions",
            "profile_sequence",
            "profileSequence",
            "catalogue_version",
            "catalogueVersion",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Cursor,
            InputId,
            Events,
            Completions,
            ProfileSequence,
            CatalogueVersion,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "cursor" => Ok(GeneratedField::Cursor),
                            "inputId" | "input_id" => Ok(GeneratedField::InputId),
                            "events" => Ok(GeneratedField::Events),
                            "completions" => Ok(GeneratedField::Completions),
                            "profileSequence" | "profile_sequence" => Ok(GeneratedField::ProfileSequence),
                            "catalogueVersion" | "catalogue_version" => Ok(GeneratedField::CatalogueVersion),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = AgentDecision;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.AgentDecision")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<AgentDecision, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut cursor__ = None;
                let mut input_id__ = None;
                let mut events__ = None;
                let mut completions__ = None;
                let mut profile_sequence__ = None;
                let mut catalogue_version__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Cursor => {
                            if cursor__.is_some() {
                                return Err(serde::de::Error::duplicate_field("cursor"));
                            }
                            cursor__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::InputId => {
                            if input_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("inputId"));
                            }
                            input_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Events => {
                            if events__.is_some() {
                                return Err(serde::de::Error::duplicate_field("events"));
                            }
                            events__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Completions => {
                            if completions__.is_some() {
                                return Err(serde::de::Error::duplicate_field("completions"));
                            }
                            completions__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ProfileSequence => {
                            if profile_sequence__.is_some() {
                                return Err(serde::de::Error::duplicate_field("profileSequence"));
                            }
                            profile_sequence__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::CatalogueVersion => {
                            if catalogue_version__.is_some() {
                                return Err(serde::de::Error::duplicate_field("catalogueVersion"));
                            }
                            catalogue_version__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(AgentDecision {
                    cursor: cursor__.unwrap_or_default(),
                    input_id: input_id__.unwrap_or_default(),
                    events: events__.unwrap_or_default(),
                    completions: completions__.unwrap_or_default(),
                    profile_sequence: profile_sequence__.unwrap_or_default(),
                    catalogue_version: catalogue_version__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.AgentDecision", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for AgentDefined {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.profile.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.AgentDefined", len)?;
        if let Some(v) = self.profile.as_ref() {
            struct_ser.serialize_field("profile", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for AgentDefined {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "profile",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Profile,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "profile" => Ok(GeneratedField::Profile),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = AgentDefined;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.AgentDefined")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<AgentDefined, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut profile__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Profile => {
                            if profile__.is_some() {
                                return Err(serde::de::Error::duplicate_field("profile"));
                            }
                            profile__ = map_.next_value()?;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(AgentDefined {
                    profile: profile__,
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.AgentDefined", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for AgentFailed {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.kind.is_empty() {
            len += 1;
        }
        if !self.message.is_empty() {
            len += 1;
        }
        if self.attempt != 0 {
            len += 1;
        }
        if self.retried {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.AgentFailed", len)?;
        if !self.kind.is_empty() {
            struct_ser.serialize_field("kind", &self.kind)?;
        }
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        if self.attempt != 0 {
            struct_ser.serialize_field("attempt", &self.attempt)?;
        }
        if self.retried {
            struct_ser.serialize_field("retried", &self.retried)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for AgentFailed {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "kind",
            "message",
            "attempt",
            "retried",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Kind,
            Message,
            Attempt,
            Retried,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "kind" => Ok(GeneratedField::Kind),
                            "message" => Ok(GeneratedField::Message),
                            "attempt" => Ok(GeneratedField::Attempt),
                            "retried" => Ok(GeneratedField::Retried),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = AgentFailed;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.AgentFailed")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<AgentFailed, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut kind__ = None;
                let mut message__ = None;
                let mut attempt__ = None;
                let mut retried__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Kind => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("kind"));
                            }
                            kind__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Attempt => {
                            if attempt__.is_some() {
                                return Err(serde::de::Error::duplicate_field("attempt"));
                            }
                            attempt__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Retried => {
                            if retried__.is_some() {
                                return Err(serde::de::Error::duplicate_field("retried"));
                            }
                            retried__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(AgentFailed {
                    kind: kind__.unwrap_or_default(),
                    message: message__.unwrap_or_default(),
                    attempt: attempt__.unwrap_or_default(),
                    retried: retried__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.AgentFailed", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for AgentJoined {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.message_id.is_empty() {
            len += 1;
        }
        if !self.into_correlation_id.is_empty() {
            len += 1;
        }
        if !self.into_message_id.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.AgentJoined", len)?;
        if !self.message_id.is_empty() {
            struct_ser.serialize_field("message_id", &self.message_id)?;
        }
        if !self.into_correlation_id.is_empty() {
            struct_ser.serialize_field("into_correlation_id", &self.into_correlation_id)?;
        }
        if !self.into_message_id.is_empty() {
            struct_ser.serialize_field("into_message_id", &self.into_message_id)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for AgentJoined {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "message_id",
            "messageId",
            "into_correlation_id",
            "intoCorrelationId",
            "into_message_id",
            "intoMessageId",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            MessageId,
            IntoCorrelationId,
            IntoMessageId,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "messageId" | "message_id" => Ok(GeneratedField::MessageId),
                            "intoCorrelationId" | "into_correlation_id" => Ok(GeneratedField::IntoCorrelationId),
                            "intoMessageId" | "into_message_id" => Ok(GeneratedField::IntoMessageId),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = AgentJoined;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.AgentJoined")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<AgentJoined, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut message_id__ = None;
                let mut into_correlation_id__ = None;
                let mut into_message_id__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::MessageId => {
                            if message_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("messageId"));
                            }
                            message_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::IntoCorrelationId => {
                            if into_correlation_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("intoCorrelationId"));
                            }
                            into_correlation_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::IntoMessageId => {
                            if into_message_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("intoMessageId"));
                            }
                            into_message_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(AgentJoined {
                    message_id: message_id__.unwrap_or_default(),
                    into_correlation_id: into_correlation_id__.unwrap_or_default(),
                    into_message_id: into_message_id__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.AgentJoined", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for AgentMessage {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.message_id.is_empty() {
            len += 1;
        }
        if !self.user.is_empty() {
            len += 1;
        }
        if !self.text.is_empty() {
            len += 1;
        }
        if !self.thread_id.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.AgentMessage", len)?;
        if !self.message_id.is_empty() {
            struct_ser.serialize_field("message_id", &self.message_id)?;
        }
        if !self.user.is_empty() {
            struct_ser.serialize_field("user", &self.user)?;
        }
        if !self.text.is_empty() {
            struct_ser.serialize_field("text", &self.text)?;
        }
        if !self.thread_id.is_empty() {
            struct_ser.serialize_field("thread_id", &self.thread_id)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for AgentMessage {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "message_id",
            "messageId",
            "user",
            "text",
            "thread_id",
            "threadId",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            MessageId,
            User,
            Text,
            ThreadId,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "messageId" | "message_id" => Ok(GeneratedField::MessageId),
                            "user" => Ok(GeneratedField::User),
                            "text" => Ok(GeneratedField::Text),
                            "threadId" | "thread_id" => Ok(GeneratedField::ThreadId),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = AgentMessage;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.AgentMessage")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<AgentMessage, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut message_id__ = None;
                let mut user__ = None;
                let mut text__ = None;
                let mut thread_id__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::MessageId => {
                            if message_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("messageId"));
                            }
                            message_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::User => {
                            if user__.is_some() {
                                return Err(serde::de::Error::duplicate_field("user"));
                            }
                            user__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Text => {
                            if text__.is_some() {
                                return Err(serde::de::Error::duplicate_field("text"));
                            }
                            text__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ThreadId => {
                            if thread_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("threadId"));
                            }
                            thread_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(AgentMessage {
                    message_id: message_id__.unwrap_or_default(),
                    user: user__.unwrap_or_default(),
                    text: text__.unwrap_or_default(),
                    thread_id: thread_id__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.AgentMessage", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for AgentProfile {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.agent.is_empty() {
            len += 1;
        }
        if !self.description.is_empty() {
            len += 1;
        }
        if !self.prompt.is_empty() {
            len += 1;
        }
        if !self.tools.is_empty() {
            len += 1;
        }
        if self.max_steps != 0 {
            len += 1;
        }
        if self.history_limit != 0 {
            len += 1;
        }
        if !self.interjection.is_empty() {
            len += 1;
        }
        if !self.planning.is_empty() {
            len += 1;
        }
        if !self.threads.is_empty() {
            len += 1;
        }
        if !self.time_zone.is_empty() {
            len += 1;
        }
        if !self.day_ends_at.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.AgentProfile", len)?;
        if !self.agent.is_empty() {
            struct_ser.serialize_field("agent", &self.agent)?;
        }
        if !self.description.is_empty() {
            struct_ser.serialize_field("description", &self.description)?;
        }
        if !self.prompt.is_empty() {
            struct_ser.serialize_field("prompt", &self.prompt)?;
        }
        if !self.tools.is_empty() {
            struct_ser.serialize_field("tools", &self.tools)?;
        }
        if self.max_steps != 0 {
            struct_ser.serialize_field("max_steps", &self.max_steps)?;
        }
        if self.history_limit != 0 {
            struct_ser.serialize_field("history_limit", &self.history_limit)?;
        }
        if !self.interjection.is_empty() {
            struct_ser.serialize_field("interjection", &self.interjection)?;
        }
        if !self.planning.is_empty() {
            struct_ser.serialize_field("planning", &self.planning)?;
        }
        if !self.threads.is_empty() {
            struct_ser.serialize_field("threads", &self.threads)?;
        }
        if !self.time_zone.is_empty() {
            struct_ser.serialize_field("time_zone", &self.time_zone)?;
        }
        if !self.day_ends_at.is_empty() {
            struct_ser.serialize_field("day_ends_at", &self.day_ends_at)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for AgentProfile {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "agent",
            "description",
            "prompt",
            "tools",
            "max_steps",
            "maxSteps",
            "history_limit",
            "historyLimit",
            "interjection",
            "planning",
            "threads",
            "time_zone",
            "timeZone",
            "day_ends_at",
            "dayEndsAt",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Agent,
            Description,
            Prompt,
            Tools,
            MaxSteps,
            HistoryLimit,
            Interjection,
            Planning,
            Threads,
            TimeZone,
            DayEndsAt,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "agent" => Ok(GeneratedField::Agent),
                            "description" => Ok(GeneratedField::Description),
                            "prompt" => Ok(GeneratedField::Prompt),
                            "tools" => Ok(GeneratedField::Tools),
                            "maxSteps" | "max_steps" => Ok(GeneratedField::MaxSteps),
                            "historyLimit" | "history_limit" => Ok(GeneratedField::HistoryLimit),
                            "interjection" => Ok(GeneratedField::Interjection),
                            "planning" => Ok(GeneratedField::Planning),
                            "threads" => Ok(GeneratedField::Threads),
                            "timeZone" | "time_zone" => Ok(GeneratedField::TimeZone),
                            "dayEndsAt" | "day_ends_at" => Ok(GeneratedField::DayEndsAt),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = AgentProfile;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.AgentProfile")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<AgentProfile, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut agent__ = None;
                let mut description__ = None;
                let mut prompt__ = None;
                let mut tools__ = None;
                let mut max_steps__ = None;
                let mut history_limit__ = None;
                let mut interjection__ = None;
                let mut planning__ = None;
                let mut threads__ = None;
                let mut time_zone__ = None;
                let mut day_ends_at__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Agent => {
                            if agent__.is_some() {
                                return Err(serde::de::Error::duplicate_field("agent"));
                            }
                            agent__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Description => {
                            if description__.is_some() {
                                return Err(serde::de::Error::duplicate_field("description"));
                            }
                            description__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Prompt => {
                            if prompt__.is_some() {
                                return Err(serde::de::Error::duplicate_field("prompt"));
                            }
                            prompt__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Tools => {
                            if tools__.is_some() {
                                return Err(serde::de::Error::duplicate_field("tools"));
                            }
                            tools__ = Some(map_.next_value()?);
                        }
                        GeneratedField::MaxSteps => {
                            if max_steps__.is_some() {
                                return Err(serde::de::Error::duplicate_field("maxSteps"));
                            }
                            max_steps__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::HistoryLimit => {
                            if history_limit__.is_some() {
                                return Err(serde::de::Error::duplicate_field("historyLimit"));
                            }
                            history_limit__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Interjection => {
                            if interjection__.is_some() {
                                return Err(serde::de::Error::duplicate_field("interjection"));
                            }
                            interjection__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Planning => {
                            if planning__.is_some() {
                                return Err(serde::de::Error::duplicate_field("planning"));
                            }
                            planning__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Threads => {
                            if threads__.is_some() {
                                return Err(serde::de::Error::duplicate_field("threads"));
                            }
                            threads__ = Some(map_.next_value()?);
                        }
                        GeneratedField::TimeZone => {
                            if time_zone__.is_some() {
                                return Err(serde::de::Error::duplicate_field("timeZone"));
                            }
                            time_zone__ = Some(map_.next_value()?);
                        }
                        GeneratedField::DayEndsAt => {
                            if day_ends_at__.is_some() {
                                return Err(serde::de::Error::duplicate_field("dayEndsAt"));
                            }
                            day_ends_at__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(AgentProfile {
                    agent: agent__.unwrap_or_default(),
                    description: description__.unwrap_or_default(),
                    prompt: prompt__.unwrap_or_default(),
                    tools: tools__.unwrap_or_default(),
                    max_steps: max_steps__.unwrap_or_default(),
                    history_limit: history_limit__.unwrap_or_default(),
                    interjection: interjection__.unwrap_or_default(),
                    planning: planning__.unwrap_or_default(),
                    threads: threads__.unwrap_or_default(),
                    time_zone: time_zone__.unwrap_or_default(),
                    day_ends_at: day_ends_at__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.AgentProfile", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for AgentThought {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.text.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.AgentThought", len)?;
        if !self.text.is_empty() {
            struct_ser.serialize_field("text", &self.text)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for AgentThought {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "text",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Text,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "text" => Ok(GeneratedField::Text),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = AgentThought;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.AgentThought")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<AgentThought, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut text__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Text => {
                            if text__.is_some() {
                                return Err(serde::de::Error::duplicate_field("text"));
                            }
                            text__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(AgentThought {
                    text: text__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.AgentThought", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ApprovalRequested {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.user.is_empty() {
            len += 1;
        }
        if !self.tool.is_empty() {
            len += 1;
        }
        if !self.arguments.is_empty() {
            len += 1;
        }
        if !self.chain_id.is_empty() {
            len += 1;
        }
        if self.step != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.ApprovalRequested", len)?;
        if !self.user.is_empty() {
            struct_ser.serialize_field("user", &self.user)?;
        }
        if !self.tool.is_empty() {
            struct_ser.serialize_field("tool", &self.tool)?;
        }
        if !self.arguments.is_empty() {
            struct_ser.serialize_field("arguments", &self.arguments)?;
        }
        if !self.chain_id.is_empty() {
            struct_ser.serialize_field("chain_id", &self.chain_id)?;
        }
        if self.step != 0 {
            struct_ser.serialize_field("step", &self.step)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ApprovalRequested {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "user",
            "tool",
            "arguments",
            "chain_id",
            "chainId",
            "step",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            User,
            Tool,
            Arguments,
            ChainId,
            Step,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "user" => Ok(GeneratedField::User),
                            "tool" => Ok(GeneratedField::Tool),
                            "arguments" => Ok(GeneratedField::Arguments),
                            "chainId" | "chain_id" => Ok(GeneratedField::ChainId),
                            "step" => Ok(GeneratedField::Step),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ApprovalRequested;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ApprovalRequested")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ApprovalRequested, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut user__ = None;
                let mut tool__ = None;
                let mut arguments__ = None;
                let mut chain_id__ = None;
                let mut step__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::User => {
                            if user__.is_some() {
                                return Err(serde::de::Error::duplicate_field("user"));
                            }
                            user__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Tool => {
                            if tool__.is_some() {
                                return Err(serde::de::Error::duplicate_field("tool"));
                            }
                            tool__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Arguments => {
                            if arguments__.is_some() {
                                return Err(serde::de::Error::duplicate_field("arguments"));
                            }
                            arguments__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ChainId => {
                            if chain_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("chainId"));
                            }
                            chain_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Step => {
                            if step__.is_some() {
                                return Err(serde::de::Error::duplicate_field("step"));
                            }
                            step__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ApprovalRequested {
                    user: user__.unwrap_or_default(),
                    tool: tool__.unwrap_or_default(),
                    arguments: arguments__.unwrap_or_default(),
                    chain_id: chain_id__.unwrap_or_default(),
                    step: step__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ApprovalRequested", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ChainEnded {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.chain_id.is_empty() {
            len += 1;
        }
        if !self.outcome.is_empty() {
            len += 1;
        }
        if !self.reason.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.ChainEnded", len)?;
        if !self.chain_id.is_empty() {
            struct_ser.serialize_field("chain_id", &self.chain_id)?;
        }
        if !self.outcome.is_empty() {
            struct_ser.serialize_field("outcome", &self.outcome)?;
        }
        if !self.reason.is_empty() {
            struct_ser.serialize_field("reason", &self.reason)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ChainEnded {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "chain_id",
            "chainId",
            "outcome",
            "reason",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            ChainId,
            Outcome,
            Reason,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "chainId" | "chain_id" => Ok(GeneratedField::ChainId),
                            "outcome" => Ok(GeneratedField::Outcome),
                            "reason" => Ok(GeneratedField::Reason),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ChainEnded;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ChainEnded")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ChainEnded, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut chain_id__ = None;
                let mut outcome__ = None;
                let mut reason__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::ChainId => {
                            if chain_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("chainId"));
                            }
                            chain_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Outcome => {
                            if outcome__.is_some() {
                                return Err(serde::de::Error::duplicate_field("outcome"));
                            }
                            outcome__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Reason => {
                            if reason__.is_some() {
                                return Err(serde::de::Error::duplicate_field("reason"));
                            }
                            reason__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ChainEnded {
                    chain_id: chain_id__.unwrap_or_default(),
                    outcome: outcome__.unwrap_or_default(),
                    reason: reason__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ChainEnded", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ChainStarted {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.chain_id.is_empty() {
            len += 1;
        }
        if !self.plan.is_empty() {
            len += 1;
        }
        if !self.steps.is_empty() {
            len += 1;
        }
        if !self.origin.is_empty() {
            len += 1;
        }
        if !self.task_id.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.ChainStarted", len)?;
        if !self.chain_id.is_empty() {
            struct_ser.serialize_field("chain_id", &self.chain_id)?;
        }
        if !self.plan.is_empty() {
            struct_ser.serialize_field("plan", &self.plan)?;
        }
        if !self.steps.is_empty() {
            struct_ser.serialize_field("steps", &self.steps)?;
        }
        if !self.origin.is_empty() {
            struct_ser.serialize_field("origin", &self.origin)?;
        }
        if !self.task_id.is_empty() {
            struct_ser.serialize_field("task_id", &self.task_id)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ChainStarted {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "chain_id",
            "chainId",
            "plan",
            "steps",
            "origin",
            "task_id",
            "taskId",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            ChainId,
            Plan,
            Steps,
            Origin,
            TaskId,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "chainId" | "chain_id" => Ok(GeneratedField::ChainId),
                            "plan" => Ok(GeneratedField::Plan),
                            "steps" => Ok(GeneratedField::Steps),
                            "origin" => Ok(GeneratedField::Origin),
                            "taskId" | "task_id" => Ok(GeneratedField::TaskId),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ChainStarted;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ChainStarted")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ChainStarted, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut chain_id__ = None;
                let mut plan__ = None;
                let mut steps__ = None;
                let mut origin__ = None;
                let mut task_id__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::ChainId => {
                            if chain_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("chainId"));
                            }
                            chain_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Plan => {
                            if plan__.is_some() {
                                return Err(serde::de::Error::duplicate_field("plan"));
                            }
                            plan__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Steps => {
                            if steps__.is_some() {
                                return Err(serde::de::Error::duplicate_field("steps"));
                            }
                            steps__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Origin => {
                            if origin__.is_some() {
                                return Err(serde::de::Error::duplicate_field("origin"));
                            }
                            origin__ = Some(map_.next_value()?);
                        }
                        GeneratedField::TaskId => {
                            if task_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("taskId"));
                            }
                            task_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ChainStarted {
                    chain_id: chain_id__.unwrap_or_default(),
                    plan: plan__.unwrap_or_default(),
                    steps: steps__.unwrap_or_default(),
                    origin: origin__.unwrap_or_default(),
                    task_id: task_id__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ChainStarted", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ChainStep {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.group != 0 {
            len += 1;
        }
        if !self.event.is_empty() {
            len += 1;
        }
        if !self.params.is_empty() {
            len += 1;
        }
        if !self.decide.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.ChainStep", len)?;
        if self.group != 0 {
            struct_ser.serialize_field("group", &self.group)?;
        }
        if !self.event.is_empty() {
            struct_ser.serialize_field("event", &self.event)?;
        }
        if !self.params.is_empty() {
            struct_ser.serialize_field("params", &self.params)?;
        }
        if !self.decide.is_empty() {
            struct_ser.serialize_field("decide", &self.decide)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ChainStep {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "group",
            "event",
            "params",
            "decide",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Group,
            Event,
            Params,
            Decide,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "group" => Ok(GeneratedField::Group),
                            "event" => Ok(GeneratedField::Event),
                            "params" => Ok(GeneratedField::Params),
                            "decide" => Ok(GeneratedField::Decide),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ChainStep;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ChainStep")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ChainStep, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut group__ = None;
                let mut event__ = None;
                let mut params__ = None;
                let mut decide__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Group => {
                            if group__.is_some() {
                                return Err(serde::de::Error::duplicate_field("group"));
                            }
                            group__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Event => {
                            if event__.is_some() {
                                return Err(serde::de::Error::duplicate_field("event"));
                            }
                            event__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Params => {
                            if params__.is_some() {
                                return Err(serde::de::Error::duplicate_field("params"));
                            }
                            params__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Decide => {
                            if decide__.is_some() {
                                return Err(serde::de::Error::duplicate_field("decide"));
                            }
                            decide__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ChainStep {
                    group: group__.unwrap_or_default(),
                    event: event__.unwrap_or_default(),
                    params: params__.unwrap_or_default(),
                    decide: decide__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ChainStep", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ChainStepEnded {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.chain_id.is_empty() {
            len += 1;
        }
        if self.step != 0 {
            len += 1;
        }
        if !self.outcome.is_empty() {
            len += 1;
        }
        if !self.result.is_empty() {
            len += 1;
        }
        if !self.reason.is_empty() {
            len += 1;
        }
        if !self.params.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.ChainStepEnded", len)?;
        if !self.chain_id.is_empty() {
            struct_ser.serialize_field("chain_id", &self.chain_id)?;
        }
        if self.step != 0 {
            struct_ser.serialize_field("step", &self.step)?;
        }
        if !self.outcome.is_empty() {
            struct_ser.serialize_field("outcome", &self.outcome)?;
        }
        if !self.result.is_empty() {
            struct_ser.serialize_field("result", &self.result)?;
        }
        if !self.reason.is_empty() {
            struct_ser.serialize_field("reason", &self.reason)?;
        }
        if !self.params.is_empty() {
            struct_ser.serialize_field("params", &self.params)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ChainStepEnded {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "chain_id",
            "chainId",
            "step",
            "outcome",
            "result",
            "reason",
            "params",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            ChainId,
            Step,
            Outcome,
            Result,
            Reason,
            Params,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "chainId" | "chain_id" => Ok(GeneratedField::ChainId),
                            "step" => Ok(GeneratedField::Step),
                            "outcome" => Ok(GeneratedField::Outcome),
                            "result" => Ok(GeneratedField::Result),
                            "reason" => Ok(GeneratedField::Reason),
                            "params" => Ok(GeneratedField::Params),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ChainStepEnded;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ChainStepEnded")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ChainStepEnded, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut chain_id__ = None;
                let mut step__ = None;
                let mut outcome__ = None;
                let mut result__ = None;
                let mut reason__ = None;
                let mut params__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::ChainId => {
                            if chain_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("chainId"));
                            }
                            chain_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Step => {
                            if step__.is_some() {
                                return Err(serde::de::Error::duplicate_field("step"));
                            }
                            step__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Outcome => {
                            if outcome__.is_some() {
                                return Err(serde::de::Error::duplicate_field("outcome"));
                            }
                            outcome__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Result => {
                            if result__.is_some() {
                                return Err(serde::de::Error::duplicate_field("result"));
                            }
                            result__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Reason => {
                            if reason__.is_some() {
                                return Err(serde::de::Error::duplicate_field("reason"));
                            }
                            reason__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Params => {
                            if params__.is_some() {
                                return Err(serde::de::Error::duplicate_field("params"));
                            }
                            params__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ChainStepEnded {
                    chain_id: chain_id__.unwrap_or_default(),
                    step: step__.unwrap_or_default(),
                    outcome: outcome__.unwrap_or_default(),
                    result: result__.unwrap_or_default(),
                    reason: reason__.unwrap_or_default(),
                    params: params__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ChainStepEnded", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Completion {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.tier.is_empty() {
            len += 1;
        }
        if !self.model.is_empty() {
            len += 1;
        }
        if !self.request_digest.is_empty() {
            len += 1;
        }
        if !self.text.is_empty() {
            len += 1;
        }
        if !self.reasoning.is_empty() {
            len += 1;
        }
        if !self.tool_calls.is_empty() {
            len += 1;
        }
        if !self.finish_reason.is_empty() {
            len += 1;
        }
        if self.input_tokens != 0 {
            len += 1;
        }
        if self.output_tokens != 0 {
            len += 1;
        }
        if self.latency_ms != 0 {
            len += 1;
        }
        if self.error.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.Completion", len)?;
        if !self.tier.is_empty() {
            struct_ser.serialize_field("tier", &self.tier)?;
        }
        if !self.model.is_empty() {
            struct_ser.serialize_field("model", &self.model)?;
        }
        if !self.request_digest.is_empty() {
            struct_ser.serialize_field("request_digest", &self.request_digest)?;
        }
        if !self.text.is_empty() {
            struct_ser.serialize_field("text", &self.text)?;
        }
        if !self.reasoning.is_empty() {
            struct_ser.serialize_field("reasoning", &self.reasoning)?;
        }
        if !self.tool_calls.is_empty() {
            struct_ser.serialize_field("tool_calls", &self.tool_calls)?;
        }
        if !self.finish_reason.is_empty() {
            struct_ser.serialize_field("finish_reason", &self.finish_reason)?;
        }
        if self.input_tokens != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("input_tokens", ToString::to_string(&self.input_tokens).as_str())?;
        }
        if self.output_tokens != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("output_tokens", ToString::to_string(&self.output_tokens).as_str())?;
        }
        if self.latency_ms != 0 {
            struct_ser.serialize_field("latency_ms", &self.latency_ms)?;
        }
        if let Some(v) = self.error.as_ref() {
            struct_ser.serialize_field("error", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Completion {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "tier",
            "model",
            "request_digest",
            "requestDigest",
            "text",
            "reasoning",
            "tool_calls",
            "toolCalls",
            "finish_reason",
            "finishReason",
            "input_tokens",
            "inputTokens",
            "output_tokens",
            "outputTokens",
            "latency_ms",
            "latencyMs",
            "error",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Tier,
            Model,
            RequestDigest,
            Text,
            Reasoning,
            ToolCalls,
            FinishReason,
            InputTokens,
            OutputTokens,
            LatencyMs,
            Error,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "tier" => Ok(GeneratedField::Tier),
                            "model" => Ok(GeneratedField::Model),
                            "requestDigest" | "request_digest" => Ok(GeneratedField::RequestDigest),
                            "text" => Ok(GeneratedField::Text),
                            "reasoning" => Ok(GeneratedField::Reasoning),
                            "toolCalls" | "tool_calls" => Ok(GeneratedField::ToolCalls),
                            "finishReason" | "finish_reason" => Ok(GeneratedField::FinishReason),
                            "inputTokens" | "input_tokens" => Ok(GeneratedField::InputTokens),
                            "outputTokens" | "output_tokens" => Ok(GeneratedField::OutputTokens),
                            "latencyMs" | "latency_ms" => Ok(GeneratedField::LatencyMs),
                            "error" => Ok(GeneratedField::Error),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Completion;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.Completion")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Completion, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut tier__ = None;
                let mut model__ = None;
                let mut request_digest__ = None;
                let mut text__ = None;
                let mut reasoning__ = None;
                let mut tool_calls__ = None;
                let mut finish_reason__ = None;
                let mut input_tokens__ = None;
                let mut output_tokens__ = None;
                let mut latency_ms__ = None;
                let mut error__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Tier => {
                            if tier__.is_some() {
                                return Err(serde::de::Error::duplicate_field("tier"));
                            }
                            tier__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Model => {
                            if model__.is_some() {
                                return Err(serde::de::Error::duplicate_field("model"));
                            }
                            model__ = Some(map_.next_value()?);
                        }
                        GeneratedField::RequestDigest => {
                            if request_digest__.is_some() {
                                return Err(serde::de::Error::duplicate_field("requestDigest"));
                            }
                            request_digest__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Text => {
                            if text__.is_some() {
                                return Err(serde::de::Error::duplicate_field("text"));
                            }
                            text__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Reasoning => {
                            if reasoning__.is_some() {
                                return Err(serde::de::Error::duplicate_field("reasoning"));
                            }
                            reasoning__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ToolCalls => {
                            if tool_calls__.is_some() {
                                return Err(serde::de::Error::duplicate_field("toolCalls"));
                            }
                            tool_calls__ = Some(map_.next_value()?);
                        }
                        GeneratedField::FinishReason => {
                            if finish_reason__.is_some() {
                                return Err(serde::de::Error::duplicate_field("finishReason"));
                            }
                            finish_reason__ = Some(map_.next_value()?);
                        }
                        GeneratedField::InputTokens => {
                            if input_tokens__.is_some() {
                                return Err(serde::de::Error::duplicate_field("inputTokens"));
                            }
                            input_tokens__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::OutputTokens => {
                            if output_tokens__.is_some() {
                                return Err(serde::de::Error::duplicate_field("outputTokens"));
                            }
                            output_tokens__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::LatencyMs => {
                            if latency_ms__.is_some() {
                                return Err(serde::de::Error::duplicate_field("latencyMs"));
                            }
                            latency_ms__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Error => {
                            if error__.is_some() {
                                return Err(serde::de::Error::duplicate_field("error"));
                            }
                            error__ = map_.next_value()?;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(Completion {
                    tier: tier__.unwrap_or_default(),
                    model: model__.unwrap_or_default(),
                    request_digest: request_digest__.unwrap_or_default(),
                    text: text__.unwrap_or_default(),
                    reasoning: reasoning__.unwrap_or_default(),
                    tool_calls: tool_calls__.unwrap_or_default(),
                    finish_reason: finish_reason__.unwrap_or_default(),
                    input_tokens: input_tokens__.unwrap_or_default(),
                    output_tokens: output_tokens__.unwrap_or_default(),
                    latency_ms: latency_ms__.unwrap_or_default(),
                    error: error__,
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.Completion", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for CompletionError {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.kind.is_empty() {
            len += 1;
        }
        if !self.message.is_empty() {
            len += 1;
        }
        if self.transient {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.CompletionError", len)?;
        if !self.kind.is_empty() {
            struct_ser.serialize_field("kind", &self.kind)?;
        }
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        if self.transient {
            struct_ser.serialize_field("transient", &self.transient)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for CompletionError {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "kind",
            "message",
            "transient",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Kind,
            Message,
            Transient,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "kind" => Ok(GeneratedField::Kind),
                            "message" => Ok(GeneratedField::Message),
                            "transient" => Ok(GeneratedField::Transient),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = CompletionError;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.CompletionError")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<CompletionError, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut kind__ = None;
                let mut message__ = None;
                let mut transient__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Kind => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("kind"));
                            }
                            kind__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Transient => {
                            if transient__.is_some() {
                                return Err(serde::de::Error::duplicate_field("transient"));
                            }
                            transient__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(CompletionError {
                    kind: kind__.unwrap_or_default(),
                    message: message__.unwrap_or_default(),
                    transient: transient__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.CompletionError", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for CompletionToolCall {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.call_id.is_empty() {
            len += 1;
        }
        if !self.tool.is_empty() {
            len += 1;
        }
        if !self.arguments.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.CompletionToolCall", len)?;
        if !self.call_id.is_empty() {
            struct_ser.serialize_field("call_id", &self.call_id)?;
        }
        if !self.tool.is_empty() {
            struct_ser.serialize_field("tool", &self.tool)?;
        }
        if !self.arguments.is_empty() {
            struct_ser.serialize_field("arguments", &self.arguments)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for CompletionToolCall {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "call_id",
            "callId",
            "tool",
            "arguments",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            CallId,
            Tool,
            Arguments,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "callId" | "call_id" => Ok(GeneratedField::CallId),
                            "tool" => Ok(GeneratedField::Tool),
                            "arguments" => Ok(GeneratedField::Arguments),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = CompletionToolCall;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.CompletionToolCall")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<CompletionToolCall, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut call_id__ = None;
                let mut tool__ = None;
                let mut arguments__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::CallId => {
                            if call_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("callId"));
                            }
                            call_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Tool => {
                            if tool__.is_some() {
                                return Err(serde::de::Error::duplicate_field("tool"));
                            }
                            tool__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Arguments => {
                            if arguments__.is_some() {
                                return Err(serde::de::Error::duplicate_field("arguments"));
                            }
                            arguments__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(CompletionToolCall {
                    call_id: call_id__.unwrap_or_default(),
                    tool: tool__.unwrap_or_default(),
                    arguments: arguments__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.CompletionToolCall", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for DeadLetter {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.consumer.is_empty() {
            len += 1;
        }
        if !self.stream.is_empty() {
            len += 1;
        }
        if self.sequence != 0 {
            len += 1;
        }
        if !self.subject.is_empty() {
            len += 1;
        }
        if !self.reason.is_empty() {
            len += 1;
        }
        if !self.head.is_empty() {
            len += 1;
        }
        if self.size != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.DeadLetter", len)?;
        if !self.consumer.is_empty() {
            struct_ser.serialize_field("consumer", &self.consumer)?;
        }
        if !self.stream.is_empty() {
            struct_ser.serialize_field("stream", &self.stream)?;
        }
        if self.sequence != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("sequence", ToString::to_string(&self.sequence).as_str())?;
        }
        if !self.subject.is_empty() {
            struct_ser.serialize_field("subject", &self.subject)?;
        }
        if !self.reason.is_empty() {
            struct_ser.serialize_field("reason", &self.reason)?;
        }
        if !self.head.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("head", pbjson::private::base64::encode(&self.head).as_str())?;
        }
        if self.size != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("size", ToString::to_string(&self.size).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for DeadLetter {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "consumer",
            "stream",
            "sequence",
            "subject",
            "reason",
            "head",
            "size",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Consumer,
            Stream,
            Sequence,
            Subject,
            Reason,
            Head,
            Size,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "consumer" => Ok(GeneratedField::Consumer),
                            "stream" => Ok(GeneratedField::Stream),
                            "sequence" => Ok(GeneratedField::Sequence),
                            "subject" => Ok(GeneratedField::Subject),
                            "reason" => Ok(GeneratedField::Reason),
                            "head" => Ok(GeneratedField::Head),
                            "size" => Ok(GeneratedField::Size),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = DeadLetter;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.DeadLetter")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<DeadLetter, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut consumer__ = None;
                let mut stream__ = None;
                let mut sequence__ = None;
                let mut subject__ = None;
                let mut reason__ = None;
                let mut head__ = None;
                let mut size__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Consumer => {
                            if consumer__.is_some() {
                                return Err(serde::de::Error::duplicate_field("consumer"));
                            }
                            consumer__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Stream => {
                            if stream__.is_some() {
                                return Err(serde::de::Error::duplicate_field("stream"));
                            }
                            stream__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Sequence => {
                            if sequence__.is_some() {
                                return Err(serde::de::Error::duplicate_field("sequence"));
                            }
                            sequence__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Subject => {
                            if subject__.is_some() {
                                return Err(serde::de::Error::duplicate_field("subject"));
                            }
                            subject__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Reason => {
                            if reason__.is_some() {
                                return Err(serde::de::Error::duplicate_field("reason"));
                            }
                            reason__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Head => {
                            if head__.is_some() {
                                return Err(serde::de::Error::duplicate_field("head"));
                            }
                            head__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Size => {
                            if size__.is_some() {
                                return Err(serde::de::Error::duplicate_field("size"));
                            }
                            size__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(DeadLetter {
                    consumer: consumer__.unwrap_or_default(),
                    stream: stream__.unwrap_or_default(),
                    sequence: sequence__.unwrap_or_default(),
                    subject: subject__.unwrap_or_default(),
                    reason: reason__.unwrap_or_default(),
                    head: head__.unwrap_or_default(),
                    size: size__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.DeadLetter", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for DecidedEvent {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.event_id.is_empty() {
            len += 1;
        }
        if !self.thread_id.is_empty() {
            len += 1;
        }
        if !self.correlation_id.is_empty() {
            len += 1;
        }
        if !self.turn_id.is_empty() {
            len += 1;
        }
        if self.event.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.DecidedEvent", len)?;
        if !self.event_id.is_empty() {
            struct_ser.serialize_field("event_id", &self.event_id)?;
        }
        if !self.thread_id.is_empty() {
            struct_ser.serialize_field("thread_id", &self.thread_id)?;
        }
        if !self.correlation_id.is_empty() {
            struct_ser.serialize_field("correlation_id", &self.correlation_id)?;
        }
        if !self.turn_id.is_empty() {
            struct_ser.serialize_field("turn_id", &self.turn_id)?;
        }
        if let Some(v) = self.event.as_ref() {
            match v {
                decided_event::Event::Thought(v) => {
                    struct_ser.serialize_field("thought", v)?;
                }
                decided_event::Event::Action(v) => {
                    struct_ser.serialize_field("action", v)?;
                }
                decided_event::Event::Failed(v) => {
                    struct_ser.serialize_field("failed", v)?;
                }
                decided_event::Event::ThreadCreated(v) => {
                    struct_ser.serialize_field("thread_created", v)?;
                }
                decided_event::Event::Joined(v) => {
                    struct_ser.serialize_field("joined", v)?;
                }
                decided_event::Event::ThreadMatched(v) => {
                    struct_ser.serialize_field("thread_matched", v)?;
                }
                decided_event::Event::ThreadSuggested(v) => {
                    struct_ser.serialize_field("thread_suggested", v)?;
                }
                decided_event::Event::ThreadSummarized(v) => {
                    struct_ser.serialize_field("thread_summarized", v)?;
                }
                decided_event::Event::ThreadArchived(v) => {
                    struct_ser.serialize_field("thread_archived", v)?;
                }
                decided_event::Event::ChainStarted(v) => {
                    struct_ser.serialize_field("chain_started", v)?;
                }
                decided_event::Event::ChainStepEnded(v) => {
                    struct_ser.serialize_field("chain_step_ended", v)?;
                }
                decided_event::Event::ChainEnded(v) => {
                    struct_ser.serialize_field("chain_ended", v)?;
                }
                decided_event::Event::ApprovalRequested(v) => {
                    struct_ser.serialize_field("approval_requested", v)?;
                }
                decided_event::Event::TaskScheduled(v) => {
                    struct_ser.serialize_field("task_scheduled", v)?;
                }
                decided_event::Event::TaskFired(v) => {
                    struct_ser.serialize_field("task_fired", v)?;
                }
                decided_event::Event::TaskChanged(v) => {
                    struct_ser.serialize_field("task_changed", v)?;
                }
                decided_event::Event::MemoryAppended(v) => {
                    struct_ser.serialize_field("memory_appended", v)?;
                }
            }
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for DecidedEvent {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "event_id",
            "eventId",
            "thread_id",
            "threadId",
            "correlation_id",
            "correlationId",
            "turn_id",
            "turnId",
            "thought",
            "action",
            "failed",
            "thread_created",
            "threadCreated",
            "joined",
            "thread_matched",
            "threadMatched",
            "thread_suggested",
            "threadSuggested",
            "thread_summarized",
            "threadSummarized",
            "thread_archived",
            "threadArchived",
            "chain_started",
            "chainStarted",
            "chain_step_ended",
            "chainStepEnded",
            "chain_ended",
            "chainEnded",
            "approval_requested",
            "approvalRequested",
            "task_scheduled",
            "taskScheduled",
            "task_fired",
            "taskFired",
            "task_changed",
            "taskChanged",
            "memory_appended",
            "memoryAppended",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            EventId,
            ThreadId,
            CorrelationId,
            TurnId,
            Thought,
            Action,
            Failed,
            ThreadCreated,
            Joined,
            ThreadMatched,
            ThreadSuggested,
            ThreadSummarized,
            ThreadArchived,
            ChainStarted,
            ChainStepEnded,
            ChainEnded,
            ApprovalRequested,
            TaskScheduled,
            TaskFired,
            TaskChanged,
            MemoryAppended,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "eventId" | "event_id" => Ok(GeneratedField::EventId),
                            "threadId" | "thread_id" => Ok(GeneratedField::ThreadId),
                            "correlationId" | "correlation_id" => Ok(GeneratedField::CorrelationId),
                            "turnId" | "turn_id" => Ok(GeneratedField::TurnId),
                            "thought" => Ok(GeneratedField::Thought),
                            "action" => Ok(GeneratedField::Action),
                            "failed" => Ok(GeneratedField::Failed),
                            "threadCreated" | "thread_created" => Ok(GeneratedField::ThreadCreated),
                            "joined" => Ok(GeneratedField::Joined),
                            "threadMatched" | "thread_matched" => Ok(GeneratedField::ThreadMatched),
                            "threadSuggested" | "thread_suggested" => Ok(GeneratedField::ThreadSuggested),
                            "threadSummarized" | "thread_summarized" => Ok(GeneratedField::ThreadSummarized),
                            "threadArchived" | "thread_archived" => Ok(GeneratedField::ThreadArchived),
                            "chainStarted" | "chain_started" => Ok(GeneratedField::ChainStarted),
                            "chainStepEnded" | "chain_step_ended" => Ok(GeneratedField::ChainStepEnded),
                            "chainEnded" | "chain_ended" => Ok(GeneratedField::ChainEnded),
                            "approvalRequested" | "approval_requested" => Ok(GeneratedField::ApprovalRequested),
                            "taskScheduled" | "task_scheduled" => Ok(GeneratedField::TaskScheduled),
                            "taskFired" | "task_fired" => Ok(GeneratedField::TaskFired),
                            "taskChanged" | "task_changed" => Ok(GeneratedField::TaskChanged),
                            "memoryAppended" | "memory_appended" => Ok(GeneratedField::MemoryAppended),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = DecidedEvent;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.DecidedEvent")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<DecidedEvent, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut event_id__ = None;
                let mut thread_id__ = None;
                let mut correlation_id__ = None;
                let mut turn_id__ = None;
                let mut event__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::EventId => {
                            if event_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("eventId"));
                            }
                            event_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ThreadId => {
                            if thread_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("threadId"));
                            }
                            thread_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::CorrelationId => {
                            if correlation_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("correlationId"));
                            }
                            correlation_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::TurnId => {
                            if turn_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("turnId"));
                            }
                            turn_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Thought => {
                            if event__.is_some() {
                                return Err(serde::de::Error::duplicate_field("thought"));
                            }
                            event__ = map_.next_value::<::std::option::Option<_>>()?.map(decided_event::Event::Thought)
;
                        }
                        GeneratedField::Action => {
                            if event__.is_some() {
                                return Err(serde::de::Error::duplicate_field("action"));
                            }
                            event__ = map_.next_value::<::std::option::Option<_>>()?.map(decided_event::Event::Action)
;
                        }
                        GeneratedField::Failed => {
                            if event__.is_some() {
                                return Err(serde::de::Error::duplicate_field("failed"));
                            }
                            event__ = map_.next_value::<::std::option::Option<_>>()?.map(decided_event::Event::Failed)
;
                        }
                        GeneratedField::ThreadCreated => {
                            if event__.is_some() {
                                return Err(serde::de::Error::duplicate_field("threadCreated"));
                            }
                            event__ = map_.next_value::<::std::option::Option<_>>()?.map(decided_event::Event::ThreadCreated)
;
                        }
                        GeneratedField::Joined => {
                            if event__.is_some() {
                                return Err(serde::de::Error::duplicate_field("joined"));
                            }
                            event__ = map_.next_value::<::std::option::Option<_>>()?.map(decided_event::Event::Joined)
;
                        }
                        GeneratedField::ThreadMatched => {
                            if event__.is_some() {
                                return Err(serde::de::Error::duplicate_field("threadMatched"));
                            }
                            event__ = map_.next_value::<::std::option::Option<_>>()?.map(decided_event::Event::ThreadMatched)
;
                        }
                        GeneratedField::ThreadSuggested => {
                            if event__.is_some() {
                                return Err(serde::de::Error::duplicate_field("threadSuggested"));
                            }
                            event__ = map_.next_value::<::std::option::Option<_>>()?.map(decided_event::Event::ThreadSuggested)
;
                        }
                        GeneratedField::ThreadSummarized => {
                            if event__.is_some() {
                                return Err(serde::de::Error::duplicate_field("threadSummarized"));
                            }
                            event__ = map_.next_value::<::std::option::Option<_>>()?.map(decided_event::Event::ThreadSummarized)
;
                        }
                        GeneratedField::ThreadArchived => {
                            if event__.is_some() {
                                return Err(serde::de::Error::duplicate_field("threadArchived"));
                            }
                            event__ = map_.next_value::<::std::option::Option<_>>()?.map(decided_event::Event::ThreadArchived)
;
                        }
                        GeneratedField::ChainStarted => {
                            if event__.is_some() {
                                return Err(serde::de::Error::duplicate_field("chainStarted"));
                            }
                            event__ = map_.next_value::<::std::option::Option<_>>()?.map(decided_event::Event::ChainStarted)
;
                        }
                        GeneratedField::ChainStepEnded => {
                            if event__.is_some() {
                                return Err(serde::de::Error::duplicate_field("chainStepEnded"));
                            }
                            event__ = map_.next_value::<::std::option::Option<_>>()?.map(decided_event::Event::ChainStepEnded)
;
                        }
                        GeneratedField::ChainEnded => {
                            if event__.is_some() {
                                return Err(serde::de::Error::duplicate_field("chainEnded"));
                            }
                            event__ = map_.next_value::<::std::option::Option<_>>()?.map(decided_event::Event::ChainEnded)
;
                        }
                        GeneratedField::ApprovalRequested => {
                            if event__.is_some() {
                                return Err(serde::de::Error::duplicate_field("approvalRequested"));
                            }
                            event__ = map_.next_value::<::std::option::Option<_>>()?.map(decided_event::Event::ApprovalRequested)
;
                        }
                        GeneratedField::TaskScheduled => {
                            if event__.is_some() {
                                return Err(serde::de::Error::duplicate_field("taskScheduled"));
                            }
                            event__ = map_.next_value::<::std::option::Option<_>>()?.map(decided_event::Event::TaskScheduled)
;
                        }
                        GeneratedField::TaskFired => {
                            if event__.is_some() {
                                return Err(serde::de::Error::duplicate_field("taskFired"));
                            }
                            event__ = map_.next_value::<::std::option::Option<_>>()?.map(decided_event::Event::TaskFired)
;
                        }
                        GeneratedField::TaskChanged => {
                            if event__.is_some() {
                                return Err(serde::de::Error::duplicate_field("taskChanged"));
                            }
                            event__ = map_.next_value::<::std::option::Option<_>>()?.map(decided_event::Event::TaskChanged)
;
                        }
                        GeneratedField::MemoryAppended => {
                            if event__.is_some() {
                                return Err(serde::de::Error::duplicate_field("memoryAppended"));
                            }
                            event__ = map_.next_value::<::std::option::Option<_>>()?.map(decided_event::Event::MemoryAppended)
;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(DecidedEvent {
                    event_id: event_id__.unwrap_or_default(),
                    thread_id: thread_id__.unwrap_or_default(),
                    correlation_id: correlation_id__.unwrap_or_default(),
                    turn_id: turn_id__.unwrap_or_default(),
                    event: event__,
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.DecidedEvent", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for EmailReceived {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.email_id.is_empty() {
            len += 1;
        }
        if !self.sender.is_empty() {
            len += 1;
        }
        if !self.to.is_empty() {
            len += 1;
        }
        if !self.subject.is_empty() {
            len += 1;
        }
        if !self.body.is_empty() {
            len += 1;
        }
        if !self.date.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.EmailReceived", len)?;
        if !self.email_id.is_empty() {
            struct_ser.serialize_field("email_id", &self.email_id)?;
        }
        if !self.sender.is_empty() {
            struct_ser.serialize_field("sender", &self.sender)?;
        }
        if !self.to.is_empty() {
            struct_ser.serialize_field("to", &self.to)?;
        }
        if !self.subject.is_empty() {
            struct_ser.serialize_field("subject", &self.subject)?;
        }
        if !self.body.is_empty() {
            struct_ser.serialize_field("body", &self.body)?;
        }
        if !self.date.is_empty() {
            struct_ser.serialize_field("date", &self.date)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for EmailReceived {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "email_id",
            "emailId",
            "sender",
            "to",
            "subject",
            "body",
            "date",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            EmailId,
            Sender,
            To,
            Subject,
            Body,
            Date,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "emailId" | "email_id" => Ok(GeneratedField::EmailId),
                            "sender" => Ok(GeneratedField::Sender),
                            "to" => Ok(GeneratedField::To),
                            "subject" => Ok(GeneratedField::Subject),
                            "body" => Ok(GeneratedField::Body),
                            "date" => Ok(GeneratedField::Date),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = EmailReceived;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.EmailReceived")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<EmailReceived, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut email_id__ = None;
                let mut sender__ = None;
                let mut to__ = None;
                let mut subject__ = None;
                let mut body__ = None;
                let mut date__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::EmailId => {
                            if email_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("emailId"));
                            }
                            email_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Sender => {
                            if sender__.is_some() {
                                return Err(serde::de::Error::duplicate_field("sender"));
                            }
                            sender__ = Some(map_.next_value()?);
                        }
                        GeneratedField::To => {
                            if to__.is_some() {
                                return Err(serde::de::Error::duplicate_field("to"));
                            }
                            to__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Subject => {
                            if subject__.is_some() {
                                return Err(serde::de::Error::duplicate_field("subject"));
                            }
                            subject__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Body => {
                            if body__.is_some() {
                                return Err(serde::de::Error::duplicate_field("body"));
                            }
                            body__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Date => {
                            if date__.is_some() {
                                return Err(serde::de::Error::duplicate_field("date"));
                            }
                            date__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(EmailReceived {
                    email_id: email_id__.unwrap_or_default(),
                    sender: sender__.unwrap_or_default(),
                    to: to__.unwrap_or_default(),
                    subject: subject__.unwrap_or_default(),
                    body: body__.unwrap_or_default(),
                    date: date__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.EmailReceived", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for LiveOutput {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.process_id.is_empty() {
            len += 1;
        }
        if !self.action_id.is_empty() {
            len += 1;
        }
        if !self.stream.is_empty() {
            len += 1;
        }
        if self.sequence != 0 {
            len += 1;
        }
        if !self.text.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.LiveOutput", len)?;
        if !self.process_id.is_empty() {
            struct_ser.serialize_field("process_id", &self.process_id)?;
        }
        if !self.action_id.is_empty() {
            struct_ser.serialize_field("action_id", &self.action_id)?;
        }
        if !self.stream.is_empty() {
            struct_ser.serialize_field("stream", &self.stream)?;
        }
        if self.sequence != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("sequence", ToString::to_string(&self.sequence).as_str())?;
        }
        if !self.text.is_empty() {
            struct_ser.serialize_field("text", &self.text)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for LiveOutput {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "process_id",
            "processId",
            "action_id",
            "actionId",
            "stream",
            "sequence",
            "text",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            ProcessId,
            ActionId,
            Stream,
            Sequence,
            Text,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "processId" | "process_id" => Ok(GeneratedField::ProcessId),
                            "actionId" | "action_id" => Ok(GeneratedField::ActionId),
                            "stream" => Ok(GeneratedField::Stream),
                            "sequence" => Ok(GeneratedField::Sequence),
                            "text" => Ok(GeneratedField::Text),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = LiveOutput;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.LiveOutput")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<LiveOutput, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut process_id__ = None;
                let mut action_id__ = None;
                let mut stream__ = None;
                let mut sequence__ = None;
                let mut text__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::ProcessId => {
                            if process_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("processId"));
                            }
                            process_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ActionId => {
                            if action_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("actionId"));
                            }
                            action_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Stream => {
                            if stream__.is_some() {
                                return Err(serde::de::Error::duplicate_field("stream"));
                            }
                            stream__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Sequence => {
                            if sequence__.is_some() {
                                return Err(serde::de::Error::duplicate_field("sequence"));
                            }
                            sequence__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Text => {
                            if text__.is_some() {
                                return Err(serde::de::Error::duplicate_field("text"));
                            }
                            text__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(LiveOutput {
                    process_id: process_id__.unwrap_or_default(),
                    action_id: action_id__.unwrap_or_default(),
                    stream: stream__.unwrap_or_default(),
                    sequence: sequence__.unwrap_or_default(),
                    text: text__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.LiveOutput", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for LiveToken {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.thread_id.is_empty() {
            len += 1;
        }
        if self.index != 0 {
            len += 1;
        }
        if !self.text.is_empty() {
            len += 1;
        }
        if self.reasoning {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.LiveToken", len)?;
        if !self.thread_id.is_empty() {
            struct_ser.serialize_field("thread_id", &self.thread_id)?;
        }
        if self.index != 0 {
            struct_ser.serialize_field("index", &self.index)?;
        }
        if !self.text.is_empty() {
            struct_ser.serialize_field("text", &self.text)?;
        }
        if self.reasoning {
            struct_ser.serialize_field("reasoning", &self.reasoning)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for LiveToken {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "thread_id",
            "threadId",
            "index",
            "text",
            "reasoning",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            ThreadId,
            Index,
            Text,
            Reasoning,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "threadId" | "thread_id" => Ok(GeneratedField::ThreadId),
                            "index" => Ok(GeneratedField::Index),
                            "text" => Ok(GeneratedField::Text),
                            "reasoning" => Ok(GeneratedField::Reasoning),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = LiveToken;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.LiveToken")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<LiveToken, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut thread_id__ = None;
                let mut index__ = None;
                let mut text__ = None;
                let mut reasoning__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::ThreadId => {
                            if thread_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("threadId"));
                            }
                            thread_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Index => {
                            if index__.is_some() {
                                return Err(serde::de::Error::duplicate_field("index"));
                            }
                            index__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Text => {
                            if text__.is_some() {
                                return Err(serde::de::Error::duplicate_field("text"));
                            }
                            text__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Reasoning => {
                            if reasoning__.is_some() {
                                return Err(serde::de::Error::duplicate_field("reasoning"));
                            }
                            reasoning__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(LiveToken {
                    thread_id: thread_id__.unwrap_or_default(),
                    index: index__.unwrap_or_default(),
                    text: text__.unwrap_or_default(),
                    reasoning: reasoning__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.LiveToken", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for MemoryAppended {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.memory_id.is_empty() {
            len += 1;
        }
        if !self.kind.is_empty() {
            len += 1;
        }
        if !self.subject.is_empty() {
            len += 1;
        }
        if !self.content.is_empty() {
            len += 1;
        }
        if !self.keywords.is_empty() {
            len += 1;
        }
        if !self.day.is_empty() {
            len += 1;
        }
        if !self.source_event_ids.is_empty() {
            len += 1;
        }
        if !self.secrets.is_empty() {
            len += 1;
        }
        if !self.user.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.MemoryAppended", len)?;
        if !self.memory_id.is_empty() {
            struct_ser.serialize_field("memory_id", &self.memory_id)?;
        }
        if !self.kind.is_empty() {
            struct_ser.serialize_field("kind", &self.kind)?;
        }
        if !self.subject.is_empty() {
            struct_ser.serialize_field("subject", &self.subject)?;
        }
        if !self.content.is_empty() {
            struct_ser.serialize_field("content", &self.content)?;
        }
        if !self.keywords.is_empty() {
            struct_ser.serialize_field("keywords", &self.keywords)?;
        }
        if !self.day.is_empty() {
            struct_ser.serialize_field("day", &self.day)?;
        }
        if !self.source_event_ids.is_empty() {
            struct_ser.serialize_field("source_event_ids", &self.source_event_ids)?;
        }
        if !self.secrets.is_empty() {
            struct_ser.serialize_field("secrets", &self.secrets)?;
        }
        if !self.user.is_empty() {
            struct_ser.serialize_field("user", &self.user)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for MemoryAppended {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "memory_id",
            "memoryId",
            "kind",
            "subject",
            "content",
            "keywords",
            "day",
            "source_event_ids",
            "sourceEventIds",
            "secrets",
            "user",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            MemoryId,
            Kind,
            Subject,
            Content,
            Keywords,
            Day,
            SourceEventIds,
            Secrets,
            User,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "memoryId" | "memory_id" => Ok(GeneratedField::MemoryId),
                            "kind" => Ok(GeneratedField::Kind),
                            "subject" => Ok(GeneratedField::Subject),
                            "content" => Ok(GeneratedField::Content),
                            "keywords" => Ok(GeneratedField::Keywords),
                            "day" => Ok(GeneratedField::Day),
                            "sourceEventIds" | "source_event_ids" => Ok(GeneratedField::SourceEventIds),
                            "secrets" => Ok(GeneratedField::Secrets),
                            "user" => Ok(GeneratedField::User),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = MemoryAppended;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.MemoryAppended")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<MemoryAppended, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut memory_id__ = None;
                let mut kind__ = None;
                let mut subject__ = None;
                let mut content__ = None;
                let mut keywords__ = None;
                let mut day__ = None;
                let mut source_event_ids__ = None;
                let mut secrets__ = None;
                let mut user__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::MemoryId => {
                            if memory_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("memoryId"));
                            }
                            memory_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Kind => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("kind"));
                            }
                            kind__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Subject => {
                            if subject__.is_some() {
                                return Err(serde::de::Error::duplicate_field("subject"));
                            }
                            subject__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Content => {
                            if content__.is_some() {
                                return Err(serde::de::Error::duplicate_field("content"));
                            }
                            content__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Keywords => {
                            if keywords__.is_some() {
                                return Err(serde::de::Error::duplicate_field("keywords"));
                            }
                            keywords__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Day => {
                            if day__.is_some() {
                                return Err(serde::de::Error::duplicate_field("day"));
                            }
                            day__ = Some(map_.next_value()?);
                        }
                        GeneratedField::SourceEventIds => {
                            if source_event_ids__.is_some() {
                                return Err(serde::de::Error::duplicate_field("sourceEventIds"));
                            }
                            source_event_ids__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Secrets => {
                            if secrets__.is_some() {
                                return Err(serde::de::Error::duplicate_field("secrets"));
                            }
                            secrets__ = Some(map_.next_value()?);
                        }
                        GeneratedField::User => {
                            if user__.is_some() {
                                return Err(serde::de::Error::duplicate_field("user"));
                            }
                            user__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(MemoryAppended {
                    memory_id: memory_id__.unwrap_or_default(),
                    kind: kind__.unwrap_or_default(),
                    subject: subject__.unwrap_or_default(),
                    content: content__.unwrap_or_default(),
                    keywords: keywords__.unwrap_or_default(),
                    day: day__.unwrap_or_default(),
                    source_event_ids: source_event_ids__.unwrap_or_default(),
                    secrets: secrets__.unwrap_or_default(),
                    user: user__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.MemoryAppended", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ProcessAnswer {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.outcome.is_empty() {
            len += 1;
        }
        if !self.reason.is_empty() {
            len += 1;
        }
        if self.state.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.ProcessAnswer", len)?;
        if !self.outcome.is_empty() {
            struct_ser.serialize_field("outcome", &self.outcome)?;
        }
        if !self.reason.is_empty() {
            struct_ser.serialize_field("reason", &self.reason)?;
        }
        if let Some(v) = self.state.as_ref() {
            struct_ser.serialize_field("state", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ProcessAnswer {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "outcome",
            "reason",
            "state",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Outcome,
            Reason,
            State,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "outcome" => Ok(GeneratedField::Outcome),
                            "reason" => Ok(GeneratedField::Reason),
                            "state" => Ok(GeneratedField::State),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ProcessAnswer;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ProcessAnswer")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ProcessAnswer, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut outcome__ = None;
                let mut reason__ = None;
                let mut state__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Outcome => {
                            if outcome__.is_some() {
                                return Err(serde::de::Error::duplicate_field("outcome"));
                            }
                            outcome__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Reason => {
                            if reason__.is_some() {
                                return Err(serde::de::Error::duplicate_field("reason"));
                            }
                            reason__ = Some(map_.next_value()?);
                        }
                        GeneratedField::State => {
                            if state__.is_some() {
                                return Err(serde::de::Error::duplicate_field("state"));
                            }
                            state__ = map_.next_value()?;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ProcessAnswer {
                    outcome: outcome__.unwrap_or_default(),
                    reason: reason__.unwrap_or_default(),
                    state: state__,
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ProcessAnswer", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ProcessCanceled {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.process_id.is_empty() {
            len += 1;
        }
        if !self.action_id.is_empty() {
            len += 1;
        }
        if !self.supervisor.is_empty() {
            len += 1;
        }
        if !self.by_action_id.is_empty() {
            len += 1;
        }
        if self.grace_ms != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.ProcessCanceled", len)?;
        if !self.process_id.is_empty() {
            struct_ser.serialize_field("process_id", &self.process_id)?;
        }
        if !self.action_id.is_empty() {
            struct_ser.serialize_field("action_id", &self.action_id)?;
        }
        if !self.supervisor.is_empty() {
            struct_ser.serialize_field("supervisor", &self.supervisor)?;
        }
        if !self.by_action_id.is_empty() {
            struct_ser.serialize_field("by_action_id", &self.by_action_id)?;
        }
        if self.grace_ms != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("grace_ms", ToString::to_string(&self.grace_ms).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ProcessCanceled {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "process_id",
            "processId",
            "action_id",
            "actionId",
            "supervisor",
            "by_action_id",
            "byActionId",
            "grace_ms",
            "graceMs",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            ProcessId,
            ActionId,
            Supervisor,
            ByActionId,
            GraceMs,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "processId" | "process_id" => Ok(GeneratedField::ProcessId),
                            "actionId" | "action_id" => Ok(GeneratedField::ActionId),
                            "supervisor" => Ok(GeneratedField::Supervisor),
                            "byActionId" | "by_action_id" => Ok(GeneratedField::ByActionId),
                            "graceMs" | "grace_ms" => Ok(GeneratedField::GraceMs),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ProcessCanceled;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ProcessCanceled")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ProcessCanceled, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut process_id__ = None;
                let mut action_id__ = None;
                let mut supervisor__ = None;
                let mut by_action_id__ = None;
                let mut grace_ms__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::ProcessId => {
                            if process_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("processId"));
                            }
                            process_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ActionId => {
                            if action_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("actionId"));
                            }
                            action_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Supervisor => {
                            if supervisor__.is_some() {
                                return Err(serde::de::Error::duplicate_field("supervisor"));
                            }
                            supervisor__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ByActionId => {
                            if by_action_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("byActionId"));
                            }
                            by_action_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::GraceMs => {
                            if grace_ms__.is_some() {
                                return Err(serde::de::Error::duplicate_field("graceMs"));
                            }
                            grace_ms__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ProcessCanceled {
                    process_id: process_id__.unwrap_or_default(),
                    action_id: action_id__.unwrap_or_default(),
                    supervisor: supervisor__.unwrap_or_default(),
                    by_action_id: by_action_id__.unwrap_or_default(),
                    grace_ms: grace_ms__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ProcessCanceled", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ProcessCapabilities {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.version.is_empty() {
            len += 1;
        }
        if !self.tools.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.ProcessCapabilities", len)?;
        if !self.version.is_empty() {
            struct_ser.serialize_field("version", &self.version)?;
        }
        if !self.tools.is_empty() {
            struct_ser.serialize_field("tools", &self.tools)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ProcessCapabilities {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "version",
            "tools",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Version,
            Tools,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "version" => Ok(GeneratedField::Version),
                            "tools" => Ok(GeneratedField::Tools),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ProcessCapabilities;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ProcessCapabilities")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ProcessCapabilities, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut version__ = None;
                let mut tools__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Version => {
                            if version__.is_some() {
                                return Err(serde::de::Error::duplicate_field("version"));
                            }
                            version__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Tools => {
                            if tools__.is_some() {
                                return Err(serde::de::Error::duplicate_field("tools"));
                            }
                            tools__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ProcessCapabilities {
                    version: version__.unwrap_or_default(),
                    tools: tools__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ProcessCapabilities", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ProcessExited {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.process_id.is_empty() {
            len += 1;
        }
        if !self.action_id.is_empty() {
            len += 1;
        }
        if !self.supervisor.is_empty() {
            len += 1;
        }
        if !self.outcome.is_empty() {
            len += 1;
        }
        if self.code.is_some() {
            len += 1;
        }
        if self.signal.is_some() {
            len += 1;
        }
        if !self.reason.is_empty() {
            len += 1;
        }
        if self.usage.is_some() {
            len += 1;
        }
        if !self.stdout_tail.is_empty() {
            len += 1;
        }
        if !self.stderr_tail.is_empty() {
            len += 1;
        }
        if self.stdout_bytes != 0 {
            len += 1;
        }
        if self.stderr_bytes != 0 {
            len += 1;
        }
        if self.decision_sequence != 0 {
            len += 1;
        }
        if self.background {
            len += 1;
        }
        if !self.program.is_empty() {
            len += 1;
        }
        if !self.tool.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.ProcessExited", len)?;
        if !self.process_id.is_empty() {
            struct_ser.serialize_field("process_id", &self.process_id)?;
        }
        if !self.action_id.is_empty() {
            struct_ser.serialize_field("action_id", &self.action_id)?;
        }
        if !self.supervisor.is_empty() {
            struct_ser.serialize_field("supervisor", &self.supervisor)?;
        }
        if !self.outcome.is_empty() {
            struct_ser.serialize_field("outcome", &self.outcome)?;
        }
        if let Some(v) = self.code.as_ref() {
            struct_ser.serialize_field("code", v)?;
        }
        if let Some(v) = self.signal.as_ref() {
            struct_ser.serialize_field("signal", v)?;
        }
        if !self.reason.is_empty() {
            struct_ser.serialize_field("reason", &self.reason)?;
        }
        if let Some(v) = self.usage.as_ref() {
            struct_ser.serialize_field("usage", v)?;
        }
        if !self.stdout_tail.is_empty() {
            struct_ser.serialize_field("stdout_tail", &self.stdout_tail)?;
        }
        if !self.stderr_tail.is_empty() {
            struct_ser.serialize_field("stderr_tail", &self.stderr_tail)?;
        }
        if self.stdout_bytes != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("stdout_bytes", ToString::to_string(&self.stdout_bytes).as_str())?;
        }
        if self.stderr_bytes != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("stderr_bytes", ToString::to_string(&self.stderr_bytes).as_str())?;
        }
        if self.decision_sequence != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("decision_sequence", ToString::to_string(&self.decision_sequence).as_str())?;
        }
        if self.background {
            struct_ser.serialize_field("background", &self.background)?;
        }
        if !self.program.is_empty() {
            struct_ser.serialize_field("program", &self.program)?;
        }
        if !self.tool.is_empty() {
            struct_ser.serialize_field("tool", &self.tool)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ProcessExited {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "process_id",
            "processId",
            "action_id",
            "actionId",
            "supervisor",
            "outcome",
            "code",
            "signal",
            "reason",
            "usage",
            "stdout_tail",
            "stdoutTail",
            "stderr_tail",
            "stderrTail",
            "stdout_bytes",
            "stdoutBytes",
            "stderr_bytes",
            "stderrBytes",
            "decision_sequence",
            "decisionSequence",
            "background",
            "program",
            "tool",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            ProcessId,
            ActionId,
            Supervisor,
            Outcome,
            Code,
            Signal,
            Reason,
            Usage,
            StdoutTail,
            StderrTail,
            StdoutBytes,
            StderrBytes,
            DecisionSequence,
            Background,
            Program,
            Tool,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "processId" | "process_id" => Ok(GeneratedField::ProcessId),
                            "actionId" | "action_id" => Ok(GeneratedField::ActionId),
                            "supervisor" => Ok(GeneratedField::Supervisor),
                            "outcome" => Ok(GeneratedField::Outcome),
                            "code" => Ok(GeneratedField::Code),
                            "signal" => Ok(GeneratedField::Signal),
                            "reason" => Ok(GeneratedField::Reason),
                            "usage" => Ok(GeneratedField::Usage),
                            "stdoutTail" | "stdout_tail" => Ok(GeneratedField::StdoutTail),
                            "stderrTail" | "stderr_tail" => Ok(GeneratedField::StderrTail),
                            "stdoutBytes" | "stdout_bytes" => Ok(GeneratedField::StdoutBytes),
                            "stderrBytes" | "stderr_bytes" => Ok(GeneratedField::StderrBytes),
                            "decisionSequence" | "decision_sequence" => Ok(GeneratedField::DecisionSequence),
                            "background" => Ok(GeneratedField::Background),
                            "program" => Ok(GeneratedField::Program),
                            "tool" => Ok(GeneratedField::Tool),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ProcessExited;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ProcessExited")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ProcessExited, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut process_id__ = None;
                let mut action_id__ = None;
                let mut supervisor__ = None;
                let mut outcome__ = None;
                let mut code__ = None;
                let mut signal__ = None;
                let mut reason__ = None;
                let mut usage__ = None;
                let mut stdout_tail__ = None;
                let mut stderr_tail__ = None;
                let mut stdout_bytes__ = None;
                let mut stderr_bytes__ = None;
                let mut decision_sequence__ = None;
                let mut background__ = None;
                let mut program__ = None;
                let mut tool__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::ProcessId => {
                            if process_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("processId"));
                            }
                            process_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ActionId => {
                            if action_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("actionId"));
                            }
                            action_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Supervisor => {
                            if supervisor__.is_some() {
                                return Err(serde::de::Error::duplicate_field("supervisor"));
                            }
                            supervisor__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Outcome => {
                            if outcome__.is_some() {
                                return Err(serde::de::Error::duplicate_field("outcome"));
                            }
                            outcome__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Code => {
                            if code__.is_some() {
                                return Err(serde::de::Error::duplicate_field("code"));
                            }
                            code__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::Signal => {
                            if signal__.is_some() {
                                return Err(serde::de::Error::duplicate_field("signal"));
                            }
                            signal__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::Reason => {
                            if reason__.is_some() {
                                return Err(serde::de::Error::duplicate_field("reason"));
                            }
                            reason__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Usage => {
                            if usage__.is_some() {
                                return Err(serde::de::Error::duplicate_field("usage"));
                            }
                            usage__ = map_.next_value()?;
                        }
                        GeneratedField::StdoutTail => {
                            if stdout_tail__.is_some() {
                                return Err(serde::de::Error::duplicate_field("stdoutTail"));
                            }
                            stdout_tail__ = Some(map_.next_value()?);
                        }
                        GeneratedField::StderrTail => {
                            if stderr_tail__.is_some() {
                                return Err(serde::de::Error::duplicate_field("stderrTail"));
                            }
                            stderr_tail__ = Some(map_.next_value()?);
                        }
                        GeneratedField::StdoutBytes => {
                            if stdout_bytes__.is_some() {
                                return Err(serde::de::Error::duplicate_field("stdoutBytes"));
                            }
                            stdout_bytes__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::StderrBytes => {
                            if stderr_bytes__.is_some() {
                                return Err(serde::de::Error::duplicate_field("stderrBytes"));
                            }
                            stderr_bytes__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::DecisionSequence => {
                            if decision_sequence__.is_some() {
                                return Err(serde::de::Error::duplicate_field("decisionSequence"));
                            }
                            decision_sequence__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Background => {
                            if background__.is_some() {
                                return Err(serde::de::Error::duplicate_field("background"));
                            }
                            background__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Program => {
                            if program__.is_some() {
                                return Err(serde::de::Error::duplicate_field("program"));
                            }
                            program__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Tool => {
                            if tool__.is_some() {
                                return Err(serde::de::Error::duplicate_field("tool"));
                            }
                            tool__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ProcessExited {
                    process_id: process_id__.unwrap_or_default(),
                    action_id: action_id__.unwrap_or_default(),
                    supervisor: supervisor__.unwrap_or_default(),
                    outcome: outcome__.unwrap_or_default(),
                    code: code__,
                    signal: signal__,
                    reason: reason__.unwrap_or_default(),
                    usage: usage__,
                    stdout_tail: stdout_tail__.unwrap_or_default(),
                    stderr_tail: stderr_tail__.unwrap_or_default(),
                    stdout_bytes: stdout_bytes__.unwrap_or_default(),
                    stderr_bytes: stderr_bytes__.unwrap_or_default(),
                    decision_sequence: decision_sequence__.unwrap_or_default(),
                    background: background__.unwrap_or_default(),
                    program: program__.unwrap_or_default(),
                    tool: tool__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ProcessExited", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ProcessLook {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let len = 0;
        let struct_ser = serializer.serialize_struct("kairo.v1.ProcessLook", len)?;
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ProcessLook {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                            Ok(GeneratedField::__SkipField__)
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ProcessLook;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ProcessLook")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ProcessLook, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                while map_.next_key::<GeneratedField>()?.is_some() {
                    let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                }
                Ok(ProcessLook {
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ProcessLook", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ProcessProgress {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.process_id.is_empty() {
            len += 1;
        }
        if !self.action_id.is_empty() {
            len += 1;
        }
        if !self.supervisor.is_empty() {
            len += 1;
        }
        if self.fraction.is_some() {
            len += 1;
        }
        if !self.message.is_empty() {
            len += 1;
        }
        if !self.tail.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.ProcessProgress", len)?;
        if !self.process_id.is_empty() {
            struct_ser.serialize_field("process_id", &self.process_id)?;
        }
        if !self.action_id.is_empty() {
            struct_ser.serialize_field("action_id", &self.action_id)?;
        }
        if !self.supervisor.is_empty() {
            struct_ser.serialize_field("supervisor", &self.supervisor)?;
        }
        if let Some(v) = self.fraction.as_ref() {
            struct_ser.serialize_field("fraction", v)?;
        }
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        if !self.tail.is_empty() {
            struct_ser.serialize_field("tail", &self.tail)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ProcessProgress {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "process_id",
            "processId",
            "action_id",
            "actionId",
            "supervisor",
            "fraction",
            "message",
            "tail",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            ProcessId,
            ActionId,
            Supervisor,
            Fraction,
            Message,
            Tail,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "processId" | "process_id" => Ok(GeneratedField::ProcessId),
                            "actionId" | "action_id" => Ok(GeneratedField::ActionId),
                            "supervisor" => Ok(GeneratedField::Supervisor),
                            "fraction" => Ok(GeneratedField::Fraction),
                            "message" => Ok(GeneratedField::Message),
                            "tail" => Ok(GeneratedField::Tail),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ProcessProgress;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ProcessProgress")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ProcessProgress, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut process_id__ = None;
                let mut action_id__ = None;
                let mut supervisor__ = None;
                let mut fraction__ = None;
                let mut message__ = None;
                let mut tail__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::ProcessId => {
                            if process_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("processId"));
                            }
                            process_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ActionId => {
                            if action_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("actionId"));
                            }
                            action_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Supervisor => {
                            if supervisor__.is_some() {
                                return Err(serde::de::Error::duplicate_field("supervisor"));
                            }
                            supervisor__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Fraction => {
                            if fraction__.is_some() {
                                return Err(serde::de::Error::duplicate_field("fraction"));
                            }
                            fraction__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Tail => {
                            if tail__.is_some() {
                                return Err(serde::de::Error::duplicate_field("tail"));
                            }
                            tail__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ProcessProgress {
                    process_id: process_id__.unwrap_or_default(),
                    action_id: action_id__.unwrap_or_default(),
                    supervisor: supervisor__.unwrap_or_default(),
                    fraction: fraction__,
                    message: message__.unwrap_or_default(),
                    tail: tail__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ProcessProgress", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ProcessRequest {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.agent.is_empty() {
            len += 1;
        }
        if !self.action_id.is_empty() {
            len += 1;
        }
        if self.after != 0 {
            len += 1;
        }
        if !self.by_action_id.is_empty() {
            len += 1;
        }
        if self.ask.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.ProcessRequest", len)?;
        if !self.agent.is_empty() {
            struct_ser.serialize_field("agent", &self.agent)?;
        }
        if !self.action_id.is_empty() {
            struct_ser.serialize_field("action_id", &self.action_id)?;
        }
        if self.after != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("after", ToString::to_string(&self.after).as_str())?;
        }
        if !self.by_action_id.is_empty() {
            struct_ser.serialize_field("by_action_id", &self.by_action_id)?;
        }
        if let Some(v) = self.ask.as_ref() {
            match v {
                process_request::Ask::Look(v) => {
                    struct_ser.serialize_field("look", v)?;
                }
                process_request::Ask::Signal(v) => {
                    struct_ser.serialize_field("signal", v)?;
                }
                process_request::Ask::Write(v) => {
                    struct_ser.serialize_field("write", v)?;
                }
                process_request::Ask::Stop(v) => {
                    struct_ser.serialize_field("stop", v)?;
                }
            }
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ProcessRequest {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "agent",
            "action_id",
            "actionId",
            "after",
            "by_action_id",
            "byActionId",
            "look",
            "signal",
            "write",
            "stop",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Agent,
            ActionId,
            After,
            ByActionId,
            Look,
            Signal,
            Write,
            Stop,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "agent" => Ok(GeneratedField::Agent),
                            "actionId" | "action_id" => Ok(GeneratedField::ActionId),
                            "after" => Ok(GeneratedField::After),
                            "byActionId" | "by_action_id" => Ok(GeneratedField::ByActionId),
                            "look" => Ok(GeneratedField::Look),
                            "signal" => Ok(GeneratedField::Signal),
                            "write" => Ok(GeneratedField::Write),
                            "stop" => Ok(GeneratedField::Stop),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ProcessRequest;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ProcessRequest")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ProcessRequest, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut agent__ = None;
                let mut action_id__ = None;
                let mut after__ = None;
                let mut by_action_id__ = None;
                let mut ask__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Agent => {
                            if agent__.is_some() {
                                return Err(serde::de::Error::duplicate_field("agent"));
                            }
                            agent__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ActionId => {
                            if action_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("actionId"));
                            }
                            action_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::After => {
                            if after__.is_some() {
                                return Err(serde::de::Error::duplicate_field("after"));
                            }
                            after__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::ByActionId => {
                            if by_action_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("byActionId"));
                            }
                            by_action_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Look => {
                            if ask__.is_some() {
                                return Err(serde::de::Error::duplicate_field("look"));
                            }
                            ask__ = map_.next_value::<::std::option::Option<_>>()?.map(process_request::Ask::Look)
;
                        }
                        GeneratedField::Signal => {
                            if ask__.is_some() {
                                return Err(serde::de::Error::duplicate_field("signal"));
                            }
                            ask__ = map_.next_value::<::std::option::Option<_>>()?.map(process_request::Ask::Signal)
;
                        }
                        GeneratedField::Write => {
                            if ask__.is_some() {
                                return Err(serde::de::Error::duplicate_field("write"));
                            }
                            ask__ = map_.next_value::<::std::option::Option<_>>()?.map(process_request::Ask::Write)
;
                        }
                        GeneratedField::Stop => {
                            if ask__.is_some() {
                                return Err(serde::de::Error::duplicate_field("stop"));
                            }
                            ask__ = map_.next_value::<::std::option::Option<_>>()?.map(process_request::Ask::Stop)
;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ProcessRequest {
                    agent: agent__.unwrap_or_default(),
                    action_id: action_id__.unwrap_or_default(),
                    after: after__.unwrap_or_default(),
                    by_action_id: by_action_id__.unwrap_or_default(),
                    ask: ask__,
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ProcessRequest", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ProcessSignal {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.name.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.ProcessSignal", len)?;
        if !self.name.is_empty() {
            struct_ser.serialize_field("name", &self.name)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ProcessSignal {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "name",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Name,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "name" => Ok(GeneratedField::Name),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ProcessSignal;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ProcessSignal")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ProcessSignal, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut name__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Name => {
                            if name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("name"));
                            }
                            name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ProcessSignal {
                    name: name__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ProcessSignal", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ProcessSpawned {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.process_id.is_empty() {
            len += 1;
        }
        if !self.action_id.is_empty() {
            len += 1;
        }
        if !self.supervisor.is_empty() {
            len += 1;
        }
        if self.pid != 0 {
            len += 1;
        }
        if !self.program.is_empty() {
            len += 1;
        }
        if !self.arguments.is_empty() {
            len += 1;
        }
        if self.background {
            len += 1;
        }
        if self.decision_sequence != 0 {
            len += 1;
        }
        if !self.tool.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.ProcessSpawned", len)?;
        if !self.process_id.is_empty() {
            struct_ser.serialize_field("process_id", &self.process_id)?;
        }
        if !self.action_id.is_empty() {
            struct_ser.serialize_field("action_id", &self.action_id)?;
        }
        if !self.supervisor.is_empty() {
            struct_ser.serialize_field("supervisor", &self.supervisor)?;
        }
        if self.pid != 0 {
            struct_ser.serialize_field("pid", &self.pid)?;
        }
        if !self.program.is_empty() {
            struct_ser.serialize_field("program", &self.program)?;
        }
        if !self.arguments.is_empty() {
            struct_ser.serialize_field("arguments", &self.arguments)?;
        }
        if self.background {
            struct_ser.serialize_field("background", &self.background)?;
        }
        if self.decision_sequence != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("decision_sequence", ToString::to_string(&self.decision_sequence).as_str())?;
        }
        if !self.tool.is_empty() {
            struct_ser.serialize_field("tool", &self.tool)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ProcessSpawned {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "process_id",
            "processId",
            "action_id",
            "actionId",
            "supervisor",
            "pid",
            "program",
            "arguments",
            "background",
            "decision_sequence",
            "decisionSequence",
            "tool",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            ProcessId,
            ActionId,
            Supervisor,
            Pid,
            Program,
            Arguments,
            Background,
            DecisionSequence,
            Tool,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "processId" | "process_id" => Ok(GeneratedField::ProcessId),
                            "actionId" | "action_id" => Ok(GeneratedField::ActionId),
                            "supervisor" => Ok(GeneratedField::Supervisor),
                            "pid" => Ok(GeneratedField::Pid),
                            "program" => Ok(GeneratedField::Program),
                            "arguments" => Ok(GeneratedField::Arguments),
                            "background" => Ok(GeneratedField::Background),
                            "decisionSequence" | "decision_sequence" => Ok(GeneratedField::DecisionSequence),
                            "tool" => Ok(GeneratedField::Tool),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ProcessSpawned;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ProcessSpawned")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ProcessSpawned, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut process_id__ = None;
                let mut action_id__ = None;
                let mut supervisor__ = None;
                let mut pid__ = None;
                let mut program__ = None;
                let mut arguments__ = None;
                let mut background__ = None;
                let mut decision_sequence__ = None;
                let mut tool__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::ProcessId => {
                            if process_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("processId"));
                            }
                            process_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ActionId => {
                            if action_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("actionId"));
                            }
                            action_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Supervisor => {
                            if supervisor__.is_some() {
                                return Err(serde::de::Error::duplicate_field("supervisor"));
                            }
                            supervisor__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Pid => {
                            if pid__.is_some() {
                                return Err(serde::de::Error::duplicate_field("pid"));
                            }
                            pid__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Program => {
                            if program__.is_some() {
                                return Err(serde::de::Error::duplicate_field("program"));
                            }
                            program__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Arguments => {
                            if arguments__.is_some() {
                                return Err(serde::de::Error::duplicate_field("arguments"));
                            }
                            arguments__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Background => {
                            if background__.is_some() {
                                return Err(serde::de::Error::duplicate_field("background"));
                            }
                            background__ = Some(map_.next_value()?);
                        }
                        GeneratedField::DecisionSequence => {
                            if decision_sequence__.is_some() {
                                return Err(serde::de::Error::duplicate_field("decisionSequence"));
                            }
                            decision_sequence__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Tool => {
                            if tool__.is_some() {
                                return Err(serde::de::Error::duplicate_field("tool"));
                            }
                            tool__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ProcessSpawned {
                    process_id: process_id__.unwrap_or_default(),
                    action_id: action_id__.unwrap_or_default(),
                    supervisor: supervisor__.unwrap_or_default(),
                    pid: pid__.unwrap_or_default(),
                    program: program__.unwrap_or_default(),
                    arguments: arguments__.unwrap_or_default(),
                    background: background__.unwrap_or_default(),
                    decision_sequence: decision_sequence__.unwrap_or_default(),
                    tool: tool__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ProcessSpawned", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ProcessState {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.process_id.is_empty() {
            len += 1;
        }
        if self.running_ms != 0 {
            len += 1;
        }
        if self.fraction.is_some() {
            len += 1;
        }
        if !self.message.is_empty() {
            len += 1;
        }
        if !self.stdout_tail.is_empty() {
            len += 1;
        }
        if !self.stderr_tail.is_empty() {
            len += 1;
        }
        if self.stdout_bytes != 0 {
            len += 1;
        }
        if self.stderr_bytes != 0 {
            len += 1;
        }
        if !self.outcome.is_empty() {
            len += 1;
        }
        if self.code.is_some() {
            len += 1;
        }
        if self.signal.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.ProcessState", len)?;
        if !self.process_id.is_empty() {
            struct_ser.serialize_field("process_id", &self.process_id)?;
        }
        if self.running_ms != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("running_ms", ToString::to_string(&self.running_ms).as_str())?;
        }
        if let Some(v) = self.fraction.as_ref() {
            struct_ser.serialize_field("fraction", v)?;
        }
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        if !self.stdout_tail.is_empty() {
            struct_ser.serialize_field("stdout_tail", &self.stdout_tail)?;
        }
        if !self.stderr_tail.is_empty() {
            struct_ser.serialize_field("stderr_tail", &self.stderr_tail)?;
        }
        if self.stdout_bytes != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("stdout_bytes", ToString::to_string(&self.stdout_bytes).as_str())?;
        }
        if self.stderr_bytes != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("stderr_bytes", ToString::to_string(&self.stderr_bytes).as_str())?;
        }
        if !self.outcome.is_empty() {
            struct_ser.serialize_field("outcome", &self.outcome)?;
        }
        if let Some(v) = self.code.as_ref() {
            struct_ser.serialize_field("code", v)?;
        }
        if let Some(v) = self.signal.as_ref() {
            struct_ser.serialize_field("signal", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ProcessState {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "process_id",
            "processId",
            "running_ms",
            "runningMs",
            "fraction",
            "message",
            "stdout_tail",
            "stdoutTail",
            "stderr_tail",
            "stderrTail",
            "stdout_bytes",
            "stdoutBytes",
            "stderr_bytes",
            "stderrBytes",
            "outcome",
            "code",
            "signal",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            ProcessId,
            RunningMs,
            Fraction,
            Message,
            StdoutTail,
            StderrTail,
            StdoutBytes,
            StderrBytes,
            Outcome,
            Code,
            Signal,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "processId" | "process_id" => Ok(GeneratedField::ProcessId),
                            "runningMs" | "running_ms" => Ok(GeneratedField::RunningMs),
                            "fraction" => Ok(GeneratedField::Fraction),
                            "message" => Ok(GeneratedField::Message),
                            "stdoutTail" | "stdout_tail" => Ok(GeneratedField::StdoutTail),
                            "stderrTail" | "stderr_tail" => Ok(GeneratedField::StderrTail),
                            "stdoutBytes" | "stdout_bytes" => Ok(GeneratedField::StdoutBytes),
                            "stderrBytes" | "stderr_bytes" => Ok(GeneratedField::StderrBytes),
                            "outcome" => Ok(GeneratedField::Outcome),
                            "code" => Ok(GeneratedField::Code),
                            "signal" => Ok(GeneratedField::Signal),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ProcessState;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ProcessState")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ProcessState, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut process_id__ = None;
                let mut running_ms__ = None;
                let mut fraction__ = None;
                let mut message__ = None;
                let mut stdout_tail__ = None;
                let mut stderr_tail__ = None;
                let mut stdout_bytes__ = None;
                let mut stderr_bytes__ = None;
                let mut outcome__ = None;
                let mut code__ = None;
                let mut signal__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::ProcessId => {
                            if process_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("processId"));
                            }
                            process_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::RunningMs => {
                            if running_ms__.is_some() {
                                return Err(serde::de::Error::duplicate_field("runningMs"));
                            }
                            running_ms__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Fraction => {
                            if fraction__.is_some() {
                                return Err(serde::de::Error::duplicate_field("fraction"));
                            }
                            fraction__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                        GeneratedField::StdoutTail => {
                            if stdout_tail__.is_some() {
                                return Err(serde::de::Error::duplicate_field("stdoutTail"));
                            }
                            stdout_tail__ = Some(map_.next_value()?);
                        }
                        GeneratedField::StderrTail => {
                            if stderr_tail__.is_some() {
                                return Err(serde::de::Error::duplicate_field("stderrTail"));
                            }
                            stderr_tail__ = Some(map_.next_value()?);
                        }
                        GeneratedField::StdoutBytes => {
                            if stdout_bytes__.is_some() {
                                return Err(serde::de::Error::duplicate_field("stdoutBytes"));
                            }
                            stdout_bytes__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::StderrBytes => {
                            if stderr_bytes__.is_some() {
                                return Err(serde::de::Error::duplicate_field("stderrBytes"));
                            }
                            stderr_bytes__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Outcome => {
                            if outcome__.is_some() {
                                return Err(serde::de::Error::duplicate_field("outcome"));
                            }
                            outcome__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Code => {
                            if code__.is_some() {
                                return Err(serde::de::Error::duplicate_field("code"));
                            }
                            code__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::Signal => {
                            if signal__.is_some() {
                                return Err(serde::de::Error::duplicate_field("signal"));
                            }
                            signal__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ProcessState {
                    process_id: process_id__.unwrap_or_default(),
                    running_ms: running_ms__.unwrap_or_default(),
                    fraction: fraction__,
                    message: message__.unwrap_or_default(),
                    stdout_tail: stdout_tail__.unwrap_or_default(),
                    stderr_tail: stderr_tail__.unwrap_or_default(),
                    stdout_bytes: stdout_bytes__.unwrap_or_default(),
                    stderr_bytes: stderr_bytes__.unwrap_or_default(),
                    outcome: outcome__.unwrap_or_default(),
                    code: code__,
                    signal: signal__,
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ProcessState", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ProcessStop {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.grace_ms != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.ProcessStop", len)?;
        if self.grace_ms != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("grace_ms", ToString::to_string(&self.grace_ms).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ProcessStop {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "grace_ms",
            "graceMs",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            GraceMs,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "graceMs" | "grace_ms" => Ok(GeneratedField::GraceMs),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ProcessStop;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ProcessStop")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ProcessStop, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut grace_ms__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::GraceMs => {
                            if grace_ms__.is_some() {
                                return Err(serde::de::Error::duplicate_field("graceMs"));
                            }
                            grace_ms__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ProcessStop {
                    grace_ms: grace_ms__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ProcessStop", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ProcessUsage {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.wall_ms != 0 {
            len += 1;
        }
        if self.user_ms != 0 {
            len += 1;
        }
        if self.system_ms != 0 {
            len += 1;
        }
        if self.max_rss_bytes != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.ProcessUsage", len)?;
        if self.wall_ms != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("wall_ms", ToString::to_string(&self.wall_ms).as_str())?;
        }
        if self.user_ms != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("user_ms", ToString::to_string(&self.user_ms).as_str())?;
        }
        if self.system_ms != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("system_ms", ToString::to_string(&self.system_ms).as_str())?;
        }
        if self.max_rss_bytes != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("max_rss_bytes", ToString::to_string(&self.max_rss_bytes).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ProcessUsage {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "wall_ms",
            "wallMs",
            "user_ms",
            "userMs",
            "system_ms",
            "systemMs",
            "max_rss_bytes",
            "maxRssBytes",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            WallMs,
            UserMs,
            SystemMs,
            MaxRssBytes,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "wallMs" | "wall_ms" => Ok(GeneratedField::WallMs),
                            "userMs" | "user_ms" => Ok(GeneratedField::UserMs),
                            "systemMs" | "system_ms" => Ok(GeneratedField::SystemMs),
                            "maxRssBytes" | "max_rss_bytes" => Ok(GeneratedField::MaxRssBytes),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ProcessUsage;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ProcessUsage")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ProcessUsage, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut wall_ms__ = None;
                let mut user_ms__ = None;
                let mut system_ms__ = None;
                let mut max_rss_bytes__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::WallMs => {
                            if wall_ms__.is_some() {
                                return Err(serde::de::Error::duplicate_field("wallMs"));
                            }
                            wall_ms__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::UserMs => {
                            if user_ms__.is_some() {
                                return Err(serde::de::Error::duplicate_field("userMs"));
                            }
                            user_ms__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::SystemMs => {
                            if system_ms__.is_some() {
                                return Err(serde::de::Error::duplicate_field("systemMs"));
                            }
                            system_ms__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::MaxRssBytes => {
                            if max_rss_bytes__.is_some() {
                                return Err(serde::de::Error::duplicate_field("maxRssBytes"));
                            }
                            max_rss_bytes__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ProcessUsage {
                    wall_ms: wall_ms__.unwrap_or_default(),
                    user_ms: user_ms__.unwrap_or_default(),
                    system_ms: system_ms__.unwrap_or_default(),
                    max_rss_bytes: max_rss_bytes__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ProcessUsage", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ProcessWrite {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.text.is_empty() {
            len += 1;
        }
        if self.close {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.ProcessWrite", len)?;
        if !self.text.is_empty() {
            struct_ser.serialize_field("text", &self.text)?;
        }
        if self.close {
            struct_ser.serialize_field("close", &self.close)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ProcessWrite {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "text",
            "close",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Text,
            Close,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "text" => Ok(GeneratedField::Text),
                            "close" => Ok(GeneratedField::Close),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ProcessWrite;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ProcessWrite")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ProcessWrite, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut text__ = None;
                let mut close__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Text => {
                            if text__.is_some() {
                                return Err(serde::de::Error::duplicate_field("text"));
                            }
                            text__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Close => {
                            if close__.is_some() {
                                return Err(serde::de::Error::duplicate_field("close"));
                            }
                            close__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ProcessWrite {
                    text: text__.unwrap_or_default(),
                    close: close__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ProcessWrite", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Say {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.text.is_empty() {
            len += 1;
        }
        if !self.user.is_empty() {
            len += 1;
        }
        if !self.message_id.is_empty() {
            len += 1;
        }
        if self.r#final {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.Say", len)?;
        if !self.text.is_empty() {
            struct_ser.serialize_field("text", &self.text)?;
        }
        if !self.user.is_empty() {
            struct_ser.serialize_field("user", &self.user)?;
        }
        if !self.message_id.is_empty() {
            struct_ser.serialize_field("message_id", &self.message_id)?;
        }
        if self.r#final {
            struct_ser.serialize_field("final", &self.r#final)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Say {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "text",
            "user",
            "message_id",
            "messageId",
            "final",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Text,
            User,
            MessageId,
            Final,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "text" => Ok(GeneratedField::Text),
                            "user" => Ok(GeneratedField::User),
                            "messageId" | "message_id" => Ok(GeneratedField::MessageId),
                            "final" => Ok(GeneratedField::Final),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Say;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.Say")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Say, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut text__ = None;
                let mut user__ = None;
                let mut message_id__ = None;
                let mut r#final__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Text => {
                            if text__.is_some() {
                                return Err(serde::de::Error::duplicate_field("text"));
                            }
                            text__ = Some(map_.next_value()?);
                        }
                        GeneratedField::User => {
                            if user__.is_some() {
                                return Err(serde::de::Error::duplicate_field("user"));
                            }
                            user__ = Some(map_.next_value()?);
                        }
                        GeneratedField::MessageId => {
                            if message_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("messageId"));
                            }
                            message_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Final => {
                            if r#final__.is_some() {
                                return Err(serde::de::Error::duplicate_field("final"));
                            }
                            r#final__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(Say {
                    text: text__.unwrap_or_default(),
                    user: user__.unwrap_or_default(),
                    message_id: message_id__.unwrap_or_default(),
                    r#final: r#final__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.Say", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for SealedSecret {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.name.is_empty() {
            len += 1;
        }
        if !self.sealed.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.SealedSecret", len)?;
        if !self.name.is_empty() {
            struct_ser.serialize_field("name", &self.name)?;
        }
        if !self.sealed.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("sealed", pbjson::private::base64::encode(&self.sealed).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for SealedSecret {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "name",
            "sealed",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Name,
            Sealed,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "name" => Ok(GeneratedField::Name),
                            "sealed" => Ok(GeneratedField::Sealed),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = SealedSecret;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.SealedSecret")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<SealedSecret, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut name__ = None;
                let mut sealed__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Name => {
                            if name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("name"));
                            }
                            name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Sealed => {
                            if sealed__.is_some() {
                                return Err(serde::de::Error::duplicate_field("sealed"));
                            }
                            sealed__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(SealedSecret {
                    name: name__.unwrap_or_default(),
                    sealed: sealed__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.SealedSecret", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ServiceStatus {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.service.is_empty() {
            len += 1;
        }
        if !self.instance.is_empty() {
            len += 1;
        }
        if !self.version.is_empty() {
            len += 1;
        }
        if self.uptime_s != 0 {
            len += 1;
        }
        if self.ready {
            len += 1;
        }
        if !self.health_url.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.ServiceStatus", len)?;
        if !self.service.is_empty() {
            struct_ser.serialize_field("service", &self.service)?;
        }
        if !self.instance.is_empty() {
            struct_ser.serialize_field("instance", &self.instance)?;
        }
        if !self.version.is_empty() {
            struct_ser.serialize_field("version", &self.version)?;
        }
        if self.uptime_s != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("uptime_s", ToString::to_string(&self.uptime_s).as_str())?;
        }
        if self.ready {
            struct_ser.serialize_field("ready", &self.ready)?;
        }
        if !self.health_url.is_empty() {
            struct_ser.serialize_field("health_url", &self.health_url)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ServiceStatus {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "service",
            "instance",
            "version",
            "uptime_s",
            "uptimeS",
            "ready",
            "health_url",
            "healthUrl",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Service,
            Instance,
            Version,
            UptimeS,
            Ready,
            HealthUrl,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "service" => Ok(GeneratedField::Service),
                            "instance" => Ok(GeneratedField::Instance),
                            "version" => Ok(GeneratedField::Version),
                            "uptimeS" | "uptime_s" => Ok(GeneratedField::UptimeS),
                            "ready" => Ok(GeneratedField::Ready),
                            "healthUrl" | "health_url" => Ok(GeneratedField::HealthUrl),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ServiceStatus;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ServiceStatus")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ServiceStatus, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut service__ = None;
                let mut instance__ = None;
                let mut version__ = None;
                let mut uptime_s__ = None;
                let mut ready__ = None;
                let mut health_url__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Service => {
                            if service__.is_some() {
                                return Err(serde::de::Error::duplicate_field("service"));
                            }
                            service__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Instance => {
                            if instance__.is_some() {
                                return Err(serde::de::Error::duplicate_field("instance"));
                            }
                            instance__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Version => {
                            if version__.is_some() {
                                return Err(serde::de::Error::duplicate_field("version"));
                            }
                            version__ = Some(map_.next_value()?);
                        }
                        GeneratedField::UptimeS => {
                            if uptime_s__.is_some() {
                                return Err(serde::de::Error::duplicate_field("uptimeS"));
                            }
                            uptime_s__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Ready => {
                            if ready__.is_some() {
                                return Err(serde::de::Error::duplicate_field("ready"));
                            }
                            ready__ = Some(map_.next_value()?);
                        }
                        GeneratedField::HealthUrl => {
                            if health_url__.is_some() {
                                return Err(serde::de::Error::duplicate_field("healthUrl"));
                            }
                            health_url__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ServiceStatus {
                    service: service__.unwrap_or_default(),
                    instance: instance__.unwrap_or_default(),
                    version: version__.unwrap_or_default(),
                    uptime_s: uptime_s__.unwrap_or_default(),
                    ready: ready__.unwrap_or_default(),
                    health_url: health_url__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ServiceStatus", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for TailRequest {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.agent.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.TailRequest", len)?;
        if !self.agent.is_empty() {
            struct_ser.serialize_field("agent", &self.agent)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for TailRequest {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "agent",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Agent,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "agent" => Ok(GeneratedField::Agent),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = TailRequest;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.TailRequest")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<TailRequest, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut agent__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Agent => {
                            if agent__.is_some() {
                                return Err(serde::de::Error::duplicate_field("agent"));
                            }
                            agent__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(TailRequest {
                    agent: agent__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.TailRequest", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Task {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.task_id.is_empty() {
            len += 1;
        }
        if !self.kind.is_empty() {
            len += 1;
        }
        if !self.title.is_empty() {
            len += 1;
        }
        if !self.r#type.is_empty() {
            len += 1;
        }
        if !self.at.is_empty() {
            len += 1;
        }
        if !self.interval.is_empty() {
            len += 1;
        }
        if !self.cron.is_empty() {
            len += 1;
        }
        if !self.rrule.is_empty() {
            len += 1;
        }
        if !self.time_zone.is_empty() {
            len += 1;
        }
        if !self.action.is_empty() {
            len += 1;
        }
        if !self.trigger.is_empty() {
            len += 1;
        }
        if !self.condition.is_empty() {
            len += 1;
        }
        if !self.thread_id.is_empty() {
            len += 1;
        }
        if !self.user.is_empty() {
            len += 1;
        }
        if !self.source.is_empty() {
            len += 1;
        }
        if !self.next_at.is_empty() {
            len += 1;
        }
        if self.occurrence != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.Task", len)?;
        if !self.task_id.is_empty() {
            struct_ser.serialize_field("task_id", &self.task_id)?;
        }
        if !self.kind.is_empty() {
            struct_ser.serialize_field("kind", &self.kind)?;
        }
        if !self.title.is_empty() {
            struct_ser.serialize_field("title", &self.title)?;
        }
        if !self.r#type.is_empty() {
            struct_ser.serialize_field("type", &self.r#type)?;
        }
        if !self.at.is_empty() {
            struct_ser.serialize_field("at", &self.at)?;
        }
        if !self.interval.is_empty() {
            struct_ser.serialize_field("interval", &self.interval)?;
        }
        if !self.cron.is_empty() {
            struct_ser.serialize_field("cron", &self.cron)?;
        }
        if !self.rrule.is_empty() {
            struct_ser.serialize_field("rrule", &self.rrule)?;
        }
        if !self.time_zone.is_empty() {
            struct_ser.serialize_field("time_zone", &self.time_zone)?;
        }
        if !self.action.is_empty() {
            struct_ser.serialize_field("action", &self.action)?;
        }
        if !self.trigger.is_empty() {
            struct_ser.serialize_field("trigger", &self.trigger)?;
        }
        if !self.condition.is_empty() {
            struct_ser.serialize_field("condition", &self.condition)?;
        }
        if !self.thread_id.is_empty() {
            struct_ser.serialize_field("thread_id", &self.thread_id)?;
        }
        if !self.user.is_empty() {
            struct_ser.serialize_field("user", &self.user)?;
        }
        if !self.source.is_empty() {
            struct_ser.serialize_field("source", &self.source)?;
        }
        if !self.next_at.is_empty() {
            struct_ser.serialize_field("next_at", &self.next_at)?;
        }
        if self.occurrence != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("occurrence", ToString::to_string(&self.occurrence).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Task {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "task_id",
            "taskId",
            "kind",
            "title",
            "type",
            "at",
            "interval",
            "cron",
            "rrule",
            "time_zone",
            "timeZone",
            "action",
            "trigger",
            "condition",
            "thread_id",
            "threadId",
            "user",
            "source",
            "next_at",
            "nextAt",
            "occurrence",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            TaskId,
            Kind,
            Title,
            Type,
            At,
            Interval,
            Cron,
            Rrule,
            TimeZone,
            Action,
            Trigger,
            Condition,
            ThreadId,
            User,
            Source,
            NextAt,
            Occurrence,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "taskId" | "task_id" => Ok(GeneratedField::TaskId),
                            "kind" => Ok(GeneratedField::Kind),
                            "title" => Ok(GeneratedField::Title),
                            "type" => Ok(GeneratedField::Type),
                            "at" => Ok(GeneratedField::At),
                            "interval" => Ok(GeneratedField::Interval),
                            "cron" => Ok(GeneratedField::Cron),
                            "rrule" => Ok(GeneratedField::Rrule),
                            "timeZone" | "time_zone" => Ok(GeneratedField::TimeZone),
                            "action" => Ok(GeneratedField::Action),
                            "trigger" => Ok(GeneratedField::Trigger),
                            "condition" => Ok(GeneratedField::Condition),
                            "threadId" | "thread_id" => Ok(GeneratedField::ThreadId),
                            "user" => Ok(GeneratedField::User),
                            "source" => Ok(GeneratedField::Source),
                            "nextAt" | "next_at" => Ok(GeneratedField::NextAt),
                            "occurrence" => Ok(GeneratedField::Occurrence),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Task;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.Task")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Task, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut task_id__ = None;
                let mut kind__ = None;
                let mut title__ = None;
                let mut r#type__ = None;
                let mut at__ = None;
                let mut interval__ = None;
                let mut cron__ = None;
                let mut rrule__ = None;
                let mut time_zone__ = None;
                let mut action__ = None;
                let mut trigger__ = None;
                let mut condition__ = None;
                let mut thread_id__ = None;
                let mut user__ = None;
                let mut source__ = None;
                let mut next_at__ = None;
                let mut occurrence__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::TaskId => {
                            if task_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("taskId"));
                            }
                            task_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Kind => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("kind"));
                            }
                            kind__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Title => {
                            if title__.is_some() {
                                return Err(serde::de::Error::duplicate_field("title"));
                            }
                            title__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Type => {
                            if r#type__.is_some() {
                                return Err(serde::de::Error::duplicate_field("type"));
                            }
                            r#type__ = Some(map_.next_value()?);
                        }
                        GeneratedField::At => {
                            if at__.is_some() {
                                return Err(serde::de::Error::duplicate_field("at"));
                            }
                            at__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Interval => {
                            if interval__.is_some() {
                                return Err(serde::de::Error::duplicate_field("interval"));
                            }
                            interval__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Cron => {
                            if cron__.is_some() {
                                return Err(serde::de::Error::duplicate_field("cron"));
                            }
                            cron__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Rrule => {
                            if rrule__.is_some() {
                                return Err(serde::de::Error::duplicate_field("rrule"));
                            }
                            rrule__ = Some(map_.next_value()?);
                        }
                        GeneratedField::TimeZone => {
                            if time_zone__.is_some() {
                                return Err(serde::de::Error::duplicate_field("timeZone"));
                            }
                            time_zone__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Action => {
                            if action__.is_some() {
                                return Err(serde::de::Error::duplicate_field("action"));
                            }
                            action__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Trigger => {
                            if trigger__.is_some() {
                                return Err(serde::de::Error::duplicate_field("trigger"));
                            }
                            trigger__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Condition => {
                            if condition__.is_some() {
                                return Err(serde::de::Error::duplicate_field("condition"));
                            }
                            condition__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ThreadId => {
                            if thread_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("threadId"));
                            }
                            thread_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::User => {
                            if user__.is_some() {
                                return Err(serde::de::Error::duplicate_field("user"));
                            }
                            user__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Source => {
                            if source__.is_some() {
                                return Err(serde::de::Error::duplicate_field("source"));
                            }
                            source__ = Some(map_.next_value()?);
                        }
                        GeneratedField::NextAt => {
                            if next_at__.is_some() {
                                return Err(serde::de::Error::duplicate_field("nextAt"));
                            }
                            next_at__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Occurrence => {
                            if occurrence__.is_some() {
                                return Err(serde::de::Error::duplicate_field("occurrence"));
                            }
                            occurrence__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(Task {
                    task_id: task_id__.unwrap_or_default(),
                    kind: kind__.unwrap_or_default(),
                    title: title__.unwrap_or_default(),
                    r#type: r#type__.unwrap_or_default(),
                    at: at__.unwrap_or_default(),
                    interval: interval__.unwrap_or_default(),
                    cron: cron__.unwrap_or_default(),
                    rrule: rrule__.unwrap_or_default(),
                    time_zone: time_zone__.unwrap_or_default(),
                    action: action__.unwrap_or_default(),
                    trigger: trigger__.unwrap_or_default(),
                    condition: condition__.unwrap_or_default(),
                    thread_id: thread_id__.unwrap_or_default(),
                    user: user__.unwrap_or_default(),
                    source: source__.unwrap_or_default(),
                    next_at: next_at__.unwrap_or_default(),
                    occurrence: occurrence__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.Task", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for TaskChanged {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.task_id.is_empty() {
            len += 1;
        }
        if !self.status.is_empty() {
            len += 1;
        }
        if !self.reason.is_empty() {
            len += 1;
        }
        if !self.next_at.is_empty() {
            len += 1;
        }
        if self.occurrence != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.TaskChanged", len)?;
        if !self.task_id.is_empty() {
            struct_ser.serialize_field("task_id", &self.task_id)?;
        }
        if !self.status.is_empty() {
            struct_ser.serialize_field("status", &self.status)?;
        }
        if !self.reason.is_empty() {
            struct_ser.serialize_field("reason", &self.reason)?;
        }
        if !self.next_at.is_empty() {
            struct_ser.serialize_field("next_at", &self.next_at)?;
        }
        if self.occurrence != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("occurrence", ToString::to_string(&self.occurrence).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for TaskChanged {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "task_id",
            "taskId",
            "status",
            "reason",
            "next_at",
            "nextAt",
            "occurrence",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            TaskId,
            Status,
            Reason,
            NextAt,
            Occurrence,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "taskId" | "task_id" => Ok(GeneratedField::TaskId),
                            "status" => Ok(GeneratedField::Status),
                            "reason" => Ok(GeneratedField::Reason),
                            "nextAt" | "next_at" => Ok(GeneratedField::NextAt),
                            "occurrence" => Ok(GeneratedField::Occurrence),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = TaskChanged;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.TaskChanged")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<TaskChanged, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut task_id__ = None;
                let mut status__ = None;
                let mut reason__ = None;
                let mut next_at__ = None;
                let mut occurrence__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::TaskId => {
                            if task_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("taskId"));
                            }
                            task_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Status => {
                            if status__.is_some() {
                                return Err(serde::de::Error::duplicate_field("status"));
                            }
                            status__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Reason => {
                            if reason__.is_some() {
                                return Err(serde::de::Error::duplicate_field("reason"));
                            }
                            reason__ = Some(map_.next_value()?);
                        }
                        GeneratedField::NextAt => {
                            if next_at__.is_some() {
                                return Err(serde::de::Error::duplicate_field("nextAt"));
                            }
                            next_at__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Occurrence => {
                            if occurrence__.is_some() {
                                return Err(serde::de::Error::duplicate_field("occurrence"));
                            }
                            occurrence__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(TaskChanged {
                    task_id: task_id__.unwrap_or_default(),
                    status: status__.unwrap_or_default(),
                    reason: reason__.unwrap_or_default(),
                    next_at: next_at__.unwrap_or_default(),
                    occurrence: occurrence__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.TaskChanged", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for TaskDue {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.task_id.is_empty() {
            len += 1;
        }
        if self.occurrence != 0 {
            len += 1;
        }
        if !self.due_at.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.TaskDue", len)?;
        if !self.task_id.is_empty() {
            struct_ser.serialize_field("task_id", &self.task_id)?;
        }
        if self.occurrence != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("occurrence", ToString::to_string(&self.occurrence).as_str())?;
        }
        if !self.due_at.is_empty() {
            struct_ser.serialize_field("due_at", &self.due_at)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for TaskDue {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "task_id",
            "taskId",
            "occurrence",
            "due_at",
            "dueAt",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            TaskId,
            Occurrence,
            DueAt,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "taskId" | "task_id" => Ok(GeneratedField::TaskId),
                            "occurrence" => Ok(GeneratedField::Occurrence),
                            "dueAt" | "due_at" => Ok(GeneratedField::DueAt),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = TaskDue;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.TaskDue")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<TaskDue, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut task_id__ = None;
                let mut occurrence__ = None;
                let mut due_at__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::TaskId => {
                            if task_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("taskId"));
                            }
                            task_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Occurrence => {
                            if occurrence__.is_some() {
                                return Err(serde::de::Error::duplicate_field("occurrence"));
                            }
                            occurrence__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::DueAt => {
                            if due_at__.is_some() {
                                return Err(serde::de::Error::duplicate_field("dueAt"));
                            }
                            due_at__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(TaskDue {
                    task_id: task_id__.unwrap_or_default(),
                    occurrence: occurrence__.unwrap_or_default(),
                    due_at: due_at__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.TaskDue", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for TaskFired {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.task_id.is_empty() {
            len += 1;
        }
        if self.occurrence != 0 {
            len += 1;
        }
        if !self.due_at.is_empty() {
            len += 1;
        }
        if self.late {
            len += 1;
        }
        if !self.next_at.is_empty() {
            len += 1;
        }
        if !self.trigger_event_id.is_empty() {
            len += 1;
        }
        if !self.data.is_empty() {
            len += 1;
        }
        if !self.lineage.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.TaskFired", len)?;
        if !self.task_id.is_empty() {
            struct_ser.serialize_field("task_id", &self.task_id)?;
        }
        if self.occurrence != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("occurrence", ToString::to_string(&self.occurrence).as_str())?;
        }
        if !self.due_at.is_empty() {
            struct_ser.serialize_field("due_at", &self.due_at)?;
        }
        if self.late {
            struct_ser.serialize_field("late", &self.late)?;
        }
        if !self.next_at.is_empty() {
            struct_ser.serialize_field("next_at", &self.next_at)?;
        }
        if !self.trigger_event_id.is_empty() {
            struct_ser.serialize_field("trigger_event_id", &self.trigger_event_id)?;
        }
        if !self.data.is_empty() {
            struct_ser.serialize_field("data", &self.data)?;
        }
        if !self.lineage.is_empty() {
            struct_ser.serialize_field("lineage", &self.lineage)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for TaskFired {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "task_id",
            "taskId",
            "occurrence",
            "due_at",
            "dueAt",
            "late",
            "next_at",
            "nextAt",
            "trigger_event_id",
            "triggerEventId",
            "data",
            "lineage",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            TaskId,
            Occurrence,
            DueAt,
            Late,
            NextAt,
            TriggerEventId,
            Data,
            Lineage,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "taskId" | "task_id" => Ok(GeneratedField::TaskId),
                            "occurrence" => Ok(GeneratedField::Occurrence),
                            "dueAt" | "due_at" => Ok(GeneratedField::DueAt),
                            "late" => Ok(GeneratedField::Late),
                            "nextAt" | "next_at" => Ok(GeneratedField::NextAt),
                            "triggerEventId" | "trigger_event_id" => Ok(GeneratedField::TriggerEventId),
                            "data" => Ok(GeneratedField::Data),
                            "lineage" => Ok(GeneratedField::Lineage),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = TaskFired;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.TaskFired")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<TaskFired, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut task_id__ = None;
                let mut occurrence__ = None;
                let mut due_at__ = None;
                let mut late__ = None;
                let mut next_at__ = None;
                let mut trigger_event_id__ = None;
                let mut data__ = None;
                let mut lineage__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::TaskId => {
                            if task_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("taskId"));
                            }
                            task_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Occurrence => {
                            if occurrence__.is_some() {
                                return Err(serde::de::Error::duplicate_field("occurrence"));
                            }
                            occurrence__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::DueAt => {
                            if due_at__.is_some() {
                                return Err(serde::de::Error::duplicate_field("dueAt"));
                            }
                            due_at__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Late => {
                            if late__.is_some() {
                                return Err(serde::de::Error::duplicate_field("late"));
                            }
                            late__ = Some(map_.next_value()?);
                        }
                        GeneratedField::NextAt => {
                            if next_at__.is_some() {
                                return Err(serde::de::Error::duplicate_field("nextAt"));
                            }
                            next_at__ = Some(map_.next_value()?);
                        }
                        GeneratedField::TriggerEventId => {
                            if trigger_event_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("triggerEventId"));
                            }
                            trigger_event_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Data => {
                            if data__.is_some() {
                                return Err(serde::de::Error::duplicate_field("data"));
                            }
                            data__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Lineage => {
                            if lineage__.is_some() {
                                return Err(serde::de::Error::duplicate_field("lineage"));
                            }
                            lineage__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(TaskFired {
                    task_id: task_id__.unwrap_or_default(),
                    occurrence: occurrence__.unwrap_or_default(),
                    due_at: due_at__.unwrap_or_default(),
                    late: late__.unwrap_or_default(),
                    next_at: next_at__.unwrap_or_default(),
                    trigger_event_id: trigger_event_id__.unwrap_or_default(),
                    data: data__.unwrap_or_default(),
                    lineage: lineage__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.TaskFired", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for TaskScheduled {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.task.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.TaskScheduled", len)?;
        if let Some(v) = self.task.as_ref() {
            struct_ser.serialize_field("task", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for TaskScheduled {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "task",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Task,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "task" => Ok(GeneratedField::Task),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = TaskScheduled;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.TaskScheduled")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<TaskScheduled, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut task__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Task => {
                            if task__.is_some() {
                                return Err(serde::de::Error::duplicate_field("task"));
                            }
                            task__ = map_.next_value()?;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(TaskScheduled {
                    task: task__,
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.TaskScheduled", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for TaskTriggered {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.trigger.is_empty() {
            len += 1;
        }
        if !self.event_id.is_empty() {
            len += 1;
        }
        if !self.r#type.is_empty() {
            len += 1;
        }
        if !self.data.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.TaskTriggered", len)?;
        if !self.trigger.is_empty() {
            struct_ser.serialize_field("trigger", &self.trigger)?;
        }
        if !self.event_id.is_empty() {
            struct_ser.serialize_field("event_id", &self.event_id)?;
        }
        if !self.r#type.is_empty() {
            struct_ser.serialize_field("type", &self.r#type)?;
        }
        if !self.data.is_empty() {
            struct_ser.serialize_field("data", &self.data)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for TaskTriggered {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "trigger",
            "event_id",
            "eventId",
            "type",
            "data",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Trigger,
            EventId,
            Type,
            Data,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "trigger" => Ok(GeneratedField::Trigger),
                            "eventId" | "event_id" => Ok(GeneratedField::EventId),
                            "type" => Ok(GeneratedField::Type),
                            "data" => Ok(GeneratedField::Data),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = TaskTriggered;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.TaskTriggered")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<TaskTriggered, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut trigger__ = None;
                let mut event_id__ = None;
                let mut r#type__ = None;
                let mut data__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Trigger => {
                            if trigger__.is_some() {
                                return Err(serde::de::Error::duplicate_field("trigger"));
                            }
                            trigger__ = Some(map_.next_value()?);
                        }
                        GeneratedField::EventId => {
                            if event_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("eventId"));
                            }
                            event_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Type => {
                            if r#type__.is_some() {
                                return Err(serde::de::Error::duplicate_field("type"));
                            }
                            r#type__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Data => {
                            if data__.is_some() {
                                return Err(serde::de::Error::duplicate_field("data"));
                            }
                            data__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(TaskTriggered {
                    trigger: trigger__.unwrap_or_default(),
                    event_id: event_id__.unwrap_or_default(),
                    r#type: r#type__.unwrap_or_default(),
                    data: data__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.TaskTriggered", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ThreadArchived {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.thread_id.is_empty() {
            len += 1;
        }
        if self.archived {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.ThreadArchived", len)?;
        if !self.thread_id.is_empty() {
            struct_ser.serialize_field("thread_id", &self.thread_id)?;
        }
        if self.archived {
            struct_ser.serialize_field("archived", &self.archived)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ThreadArchived {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "thread_id",
            "threadId",
            "archived",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            ThreadId,
            Archived,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "threadId" | "thread_id" => Ok(GeneratedField::ThreadId),
                            "archived" => Ok(GeneratedField::Archived),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ThreadArchived;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ThreadArchived")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ThreadArchived, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut thread_id__ = None;
                let mut archived__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::ThreadId => {
                            if thread_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("threadId"));
                            }
                            thread_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Archived => {
                            if archived__.is_some() {
                                return Err(serde::de::Error::duplicate_field("archived"));
                            }
                            archived__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ThreadArchived {
                    thread_id: thread_id__.unwrap_or_default(),
                    archived: archived__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ThreadArchived", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ThreadCreated {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.thread_id.is_empty() {
            len += 1;
        }
        if !self.kind.is_empty() {
            len += 1;
        }
        if !self.user.is_empty() {
            len += 1;
        }
        if !self.title.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.ThreadCreated", len)?;
        if !self.thread_id.is_empty() {
            struct_ser.serialize_field("thread_id", &self.thread_id)?;
        }
        if !self.kind.is_empty() {
            struct_ser.serialize_field("kind", &self.kind)?;
        }
        if !self.user.is_empty() {
            struct_ser.serialize_field("user", &self.user)?;
        }
        if !self.title.is_empty() {
            struct_ser.serialize_field("title", &self.title)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ThreadCreated {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "thread_id",
            "threadId",
            "kind",
            "user",
            "title",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            ThreadId,
            Kind,
            User,
            Title,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "threadId" | "thread_id" => Ok(GeneratedField::ThreadId),
                            "kind" => Ok(GeneratedField::Kind),
                            "user" => Ok(GeneratedField::User),
                            "title" => Ok(GeneratedField::Title),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ThreadCreated;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ThreadCreated")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ThreadCreated, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut thread_id__ = None;
                let mut kind__ = None;
                let mut user__ = None;
                let mut title__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::ThreadId => {
                            if thread_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("threadId"));
                            }
                            thread_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Kind => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("kind"));
                            }
                            kind__ = Some(map_.next_value()?);
                        }
                        GeneratedField::User => {
                            if user__.is_some() {
                                return Err(serde::de::Error::duplicate_field("user"));
                            }
                            user__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Title => {
                            if title__.is_some() {
                                return Err(serde::de::Error::duplicate_field("title"));
                            }
                            title__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ThreadCreated {
                    thread_id: thread_id__.unwrap_or_default(),
                    kind: kind__.unwrap_or_default(),
                    user: user__.unwrap_or_default(),
                    title: title__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ThreadCreated", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ThreadMatched {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.message_id.is_empty() {
            len += 1;
        }
        if !self.thread_id.is_empty() {
            len += 1;
        }
        if !self.action.is_empty() {
            len += 1;
        }
        if !self.reason.is_empty() {
            len += 1;
        }
        if !self.by.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.ThreadMatched", len)?;
        if !self.message_id.is_empty() {
            struct_ser.serialize_field("message_id", &self.message_id)?;
        }
        if !self.thread_id.is_empty() {
            struct_ser.serialize_field("thread_id", &self.thread_id)?;
        }
        if !self.action.is_empty() {
            struct_ser.serialize_field("action", &self.action)?;
        }
        if !self.reason.is_empty() {
            struct_ser.serialize_field("reason", &self.reason)?;
        }
        if !self.by.is_empty() {
            struct_ser.serialize_field("by", &self.by)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ThreadMatched {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "message_id",
            "messageId",
            "thread_id",
            "threadId",
            "action",
            "reason",
            "by",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            MessageId,
            ThreadId,
            Action,
            Reason,
            By,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "messageId" | "message_id" => Ok(GeneratedField::MessageId),
                            "threadId" | "thread_id" => Ok(GeneratedField::ThreadId),
                            "action" => Ok(GeneratedField::Action),
                            "reason" => Ok(GeneratedField::Reason),
                            "by" => Ok(GeneratedField::By),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ThreadMatched;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ThreadMatched")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ThreadMatched, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut message_id__ = None;
                let mut thread_id__ = None;
                let mut action__ = None;
                let mut reason__ = None;
                let mut by__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::MessageId => {
                            if message_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("messageId"));
                            }
                            message_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ThreadId => {
                            if thread_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("threadId"));
                            }
                            thread_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Action => {
                            if action__.is_some() {
                                return Err(serde::de::Error::duplicate_field("action"));
                            }
                            action__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Reason => {
                            if reason__.is_some() {
                                return Err(serde::de::Error::duplicate_field("reason"));
                            }
                            reason__ = Some(map_.next_value()?);
                        }
                        GeneratedField::By => {
                            if by__.is_some() {
                                return Err(serde::de::Error::duplicate_field("by"));
                            }
                            by__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ThreadMatched {
                    message_id: message_id__.unwrap_or_default(),
                    thread_id: thread_id__.unwrap_or_default(),
                    action: action__.unwrap_or_default(),
                    reason: reason__.unwrap_or_default(),
                    by: by__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ThreadMatched", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ThreadSuggested {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.message_id.is_empty() {
            len += 1;
        }
        if !self.user.is_empty() {
            len += 1;
        }
        if !self.action.is_empty() {
            len += 1;
        }
        if !self.thread_id.is_empty() {
            len += 1;
        }
        if !self.current_thread_id.is_empty() {
            len += 1;
        }
        if !self.reason.is_empty() {
            len += 1;
        }
        if !self.summary.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.ThreadSuggested", len)?;
        if !self.message_id.is_empty() {
            struct_ser.serialize_field("message_id", &self.message_id)?;
        }
        if !self.user.is_empty() {
            struct_ser.serialize_field("user", &self.user)?;
        }
        if !self.action.is_empty() {
            struct_ser.serialize_field("action", &self.action)?;
        }
        if !self.thread_id.is_empty() {
            struct_ser.serialize_field("thread_id", &self.thread_id)?;
        }
        if !self.current_thread_id.is_empty() {
            struct_ser.serialize_field("current_thread_id", &self.current_thread_id)?;
        }
        if !self.reason.is_empty() {
            struct_ser.serialize_field("reason", &self.reason)?;
        }
        if !self.summary.is_empty() {
            struct_ser.serialize_field("summary", &self.summary)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ThreadSuggested {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "message_id",
            "messageId",
            "user",
            "action",
            "thread_id",
            "threadId",
            "current_thread_id",
            "currentThreadId",
            "reason",
            "summary",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            MessageId,
            User,
            Action,
            ThreadId,
            CurrentThreadId,
            Reason,
            Summary,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "messageId" | "message_id" => Ok(GeneratedField::MessageId),
                            "user" => Ok(GeneratedField::User),
                            "action" => Ok(GeneratedField::Action),
                            "threadId" | "thread_id" => Ok(GeneratedField::ThreadId),
                            "currentThreadId" | "current_thread_id" => Ok(GeneratedField::CurrentThreadId),
                            "reason" => Ok(GeneratedField::Reason),
                            "summary" => Ok(GeneratedField::Summary),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ThreadSuggested;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ThreadSuggested")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ThreadSuggested, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut message_id__ = None;
                let mut user__ = None;
                let mut action__ = None;
                let mut thread_id__ = None;
                let mut current_thread_id__ = None;
                let mut reason__ = None;
                let mut summary__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::MessageId => {
                            if message_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("messageId"));
                            }
                            message_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::User => {
                            if user__.is_some() {
                                return Err(serde::de::Error::duplicate_field("user"));
                            }
                            user__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Action => {
                            if action__.is_some() {
                                return Err(serde::de::Error::duplicate_field("action"));
                            }
                            action__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ThreadId => {
                            if thread_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("threadId"));
                            }
                            thread_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::CurrentThreadId => {
                            if current_thread_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("currentThreadId"));
                            }
                            current_thread_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Reason => {
                            if reason__.is_some() {
                                return Err(serde::de::Error::duplicate_field("reason"));
                            }
                            reason__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Summary => {
                            if summary__.is_some() {
                                return Err(serde::de::Error::duplicate_field("summary"));
                            }
                            summary__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ThreadSuggested {
                    message_id: message_id__.unwrap_or_default(),
                    user: user__.unwrap_or_default(),
                    action: action__.unwrap_or_default(),
                    thread_id: thread_id__.unwrap_or_default(),
                    current_thread_id: current_thread_id__.unwrap_or_default(),
                    reason: reason__.unwrap_or_default(),
                    summary: summary__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ThreadSuggested", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ThreadSummarized {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.thread_id.is_empty() {
            len += 1;
        }
        if !self.title.is_empty() {
            len += 1;
        }
        if !self.summary.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.ThreadSummarized", len)?;
        if !self.thread_id.is_empty() {
            struct_ser.serialize_field("thread_id", &self.thread_id)?;
        }
        if !self.title.is_empty() {
            struct_ser.serialize_field("title", &self.title)?;
        }
        if !self.summary.is_empty() {
            struct_ser.serialize_field("summary", &self.summary)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ThreadSummarized {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "thread_id",
            "threadId",
            "title",
            "summary",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            ThreadId,
            Title,
            Summary,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "threadId" | "thread_id" => Ok(GeneratedField::ThreadId),
                            "title" => Ok(GeneratedField::Title),
                            "summary" => Ok(GeneratedField::Summary),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ThreadSummarized;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ThreadSummarized")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ThreadSummarized, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut thread_id__ = None;
                let mut title__ = None;
                let mut summary__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::ThreadId => {
                            if thread_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("threadId"));
                            }
                            thread_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Title => {
                            if title__.is_some() {
                                return Err(serde::de::Error::duplicate_field("title"));
                            }
                            title__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Summary => {
                            if summary__.is_some() {
                                return Err(serde::de::Error::duplicate_field("summary"));
                            }
                            summary__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ThreadSummarized {
                    thread_id: thread_id__.unwrap_or_default(),
                    title: title__.unwrap_or_default(),
                    summary: summary__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ThreadSummarized", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ToolCall {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.tool.is_empty() {
            len += 1;
        }
        if !self.arguments.is_empty() {
            len += 1;
        }
        if !self.target_action_id.is_empty() {
            len += 1;
        }
        if self.target_after != 0 {
            len += 1;
        }
        if !self.chain_id.is_empty() {
            len += 1;
        }
        if self.step != 0 {
            len += 1;
        }
        if !self.approval_id.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.ToolCall", len)?;
        if !self.tool.is_empty() {
            struct_ser.serialize_field("tool", &self.tool)?;
        }
        if !self.arguments.is_empty() {
            struct_ser.serialize_field("arguments", &self.arguments)?;
        }
        if !self.target_action_id.is_empty() {
            struct_ser.serialize_field("target_action_id", &self.target_action_id)?;
        }
        if self.target_after != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("target_after", ToString::to_string(&self.target_after).as_str())?;
        }
        if !self.chain_id.is_empty() {
            struct_ser.serialize_field("chain_id", &self.chain_id)?;
        }
        if self.step != 0 {
            struct_ser.serialize_field("step", &self.step)?;
        }
        if !self.approval_id.is_empty() {
            struct_ser.serialize_field("approval_id", &self.approval_id)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ToolCall {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "tool",
            "arguments",
            "target_action_id",
            "targetActionId",
            "target_after",
            "targetAfter",
            "chain_id",
            "chainId",
            "step",
            "approval_id",
            "approvalId",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Tool,
            Arguments,
            TargetActionId,
            TargetAfter,
            ChainId,
            Step,
            ApprovalId,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "tool" => Ok(GeneratedField::Tool),
                            "arguments" => Ok(GeneratedField::Arguments),
                            "targetActionId" | "target_action_id" => Ok(GeneratedField::TargetActionId),
                            "targetAfter" | "target_after" => Ok(GeneratedField::TargetAfter),
                            "chainId" | "chain_id" => Ok(GeneratedField::ChainId),
                            "step" => Ok(GeneratedField::Step),
                            "approvalId" | "approval_id" => Ok(GeneratedField::ApprovalId),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ToolCall;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ToolCall")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ToolCall, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut tool__ = None;
                let mut arguments__ = None;
                let mut target_action_id__ = None;
                let mut target_after__ = None;
                let mut chain_id__ = None;
                let mut step__ = None;
                let mut approval_id__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Tool => {
                            if tool__.is_some() {
                                return Err(serde::de::Error::duplicate_field("tool"));
                            }
                            tool__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Arguments => {
                            if arguments__.is_some() {
                                return Err(serde::de::Error::duplicate_field("arguments"));
                            }
                            arguments__ = Some(map_.next_value()?);
                        }
                        GeneratedField::TargetActionId => {
                            if target_action_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("targetActionId"));
                            }
                            target_action_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::TargetAfter => {
                            if target_after__.is_some() {
                                return Err(serde::de::Error::duplicate_field("targetAfter"));
                            }
                            target_after__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::ChainId => {
                            if chain_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("chainId"));
                            }
                            chain_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Step => {
                            if step__.is_some() {
                                return Err(serde::de::Error::duplicate_field("step"));
                            }
                            step__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::ApprovalId => {
                            if approval_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("approvalId"));
                            }
                            approval_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ToolCall {
                    tool: tool__.unwrap_or_default(),
                    arguments: arguments__.unwrap_or_default(),
                    target_action_id: target_action_id__.unwrap_or_default(),
                    target_after: target_after__.unwrap_or_default(),
                    chain_id: chain_id__.unwrap_or_default(),
                    step: step__.unwrap_or_default(),
                    approval_id: approval_id__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ToolCall", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ToolCatalogue {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.version.is_empty() {
            len += 1;
        }
        if !self.tools.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.ToolCatalogue", len)?;
        if !self.version.is_empty() {
            struct_ser.serialize_field("version", &self.version)?;
        }
        if !self.tools.is_empty() {
            struct_ser.serialize_field("tools", &self.tools)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ToolCatalogue {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "version",
            "tools",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Version,
            Tools,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "version" => Ok(GeneratedField::Version),
                            "tools" => Ok(GeneratedField::Tools),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ToolCatalogue;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ToolCatalogue")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ToolCatalogue, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut version__ = None;
                let mut tools__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Version => {
                            if version__.is_some() {
                                return Err(serde::de::Error::duplicate_field("version"));
                            }
                            version__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Tools => {
                            if tools__.is_some() {
                                return Err(serde::de::Error::duplicate_field("tools"));
                            }
                            tools__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ToolCatalogue {
                    version: version__.unwrap_or_default(),
                    tools: tools__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ToolCatalogue", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ToolError {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.kind.is_empty() {
            len += 1;
        }
        if !self.message.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.ToolError", len)?;
        if !self.kind.is_empty() {
            struct_ser.serialize_field("kind", &self.kind)?;
        }
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ToolError {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "kind",
            "message",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Kind,
            Message,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "kind" => Ok(GeneratedField::Kind),
                            "message" => Ok(GeneratedField::Message),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ToolError;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ToolError")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ToolError, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut kind__ = None;
                let mut message__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Kind => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("kind"));
                            }
                            kind__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ToolError {
                    kind: kind__.unwrap_or_default(),
                    message: message__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ToolError", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ToolInvocation {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.action_id.is_empty() {
            len += 1;
        }
        if !self.tool.is_empty() {
            len += 1;
        }
        if !self.arguments.is_empty() {
            len += 1;
        }
        if !self.executor.is_empty() {
            len += 1;
        }
        if !self.thread_id.is_empty() {
            len += 1;
        }
        if !self.target_action_id.is_empty() {
            len += 1;
        }
        if self.target_after != 0 {
            len += 1;
        }
        if !self.approval_id.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.ToolInvocation", len)?;
        if !self.action_id.is_empty() {
            struct_ser.serialize_field("action_id", &self.action_id)?;
        }
        if !self.tool.is_empty() {
            struct_ser.serialize_field("tool", &self.tool)?;
        }
        if !self.arguments.is_empty() {
            struct_ser.serialize_field("arguments", &self.arguments)?;
        }
        if !self.executor.is_empty() {
            struct_ser.serialize_field("executor", &self.executor)?;
        }
        if !self.thread_id.is_empty() {
            struct_ser.serialize_field("thread_id", &self.thread_id)?;
        }
        if !self.target_action_id.is_empty() {
            struct_ser.serialize_field("target_action_id", &self.target_action_id)?;
        }
        if self.target_after != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("target_after", ToString::to_string(&self.target_after).as_str())?;
        }
        if !self.approval_id.is_empty() {
            struct_ser.serialize_field("approval_id", &self.approval_id)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ToolInvocation {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "action_id",
            "actionId",
            "tool",
            "arguments",
            "executor",
            "thread_id",
            "threadId",
            "target_action_id",
            "targetActionId",
            "target_after",
            "targetAfter",
            "approval_id",
            "approvalId",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            ActionId,
            Tool,
            Arguments,
            Executor,
            ThreadId,
            TargetActionId,
            TargetAfter,
            ApprovalId,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "actionId" | "action_id" => Ok(GeneratedField::ActionId),
                            "tool" => Ok(GeneratedField::Tool),
                            "arguments" => Ok(GeneratedField::Arguments),
                            "executor" => Ok(GeneratedField::Executor),
                            "threadId" | "thread_id" => Ok(GeneratedField::ThreadId),
                            "targetActionId" | "target_action_id" => Ok(GeneratedField::TargetActionId),
                            "targetAfter" | "target_after" => Ok(GeneratedField::TargetAfter),
                            "approvalId" | "approval_id" => Ok(GeneratedField::ApprovalId),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ToolInvocation;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ToolInvocation")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ToolInvocation, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut action_id__ = None;
                let mut tool__ = None;
                let mut arguments__ = None;
                let mut executor__ = None;
                let mut thread_id__ = None;
                let mut target_action_id__ = None;
                let mut target_after__ = None;
                let mut approval_id__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::ActionId => {
                            if action_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("actionId"));
                            }
                            action_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Tool => {
                            if tool__.is_some() {
                                return Err(serde::de::Error::duplicate_field("tool"));
                            }
                            tool__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Arguments => {
                            if arguments__.is_some() {
                                return Err(serde::de::Error::duplicate_field("arguments"));
                            }
                            arguments__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Executor => {
                            if executor__.is_some() {
                                return Err(serde::de::Error::duplicate_field("executor"));
                            }
                            executor__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ThreadId => {
                            if thread_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("threadId"));
                            }
                            thread_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::TargetActionId => {
                            if target_action_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("targetActionId"));
                            }
                            target_action_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::TargetAfter => {
                            if target_after__.is_some() {
                                return Err(serde::de::Error::duplicate_field("targetAfter"));
                            }
                            target_after__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::ApprovalId => {
                            if approval_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("approvalId"));
                            }
                            approval_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ToolInvocation {
                    action_id: action_id__.unwrap_or_default(),
                    tool: tool__.unwrap_or_default(),
                    arguments: arguments__.unwrap_or_default(),
                    executor: executor__.unwrap_or_default(),
                    thread_id: thread_id__.unwrap_or_default(),
                    target_action_id: target_action_id__.unwrap_or_default(),
                    target_after: target_after__.unwrap_or_default(),
                    approval_id: approval_id__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ToolInvocation", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ToolInvoke {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.runner.is_empty() {
            len += 1;
        }
        if self.decision_sequence != 0 {
            len += 1;
        }
        if !self.actions.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.ToolInvoke", len)?;
        if !self.runner.is_empty() {
            struct_ser.serialize_field("runner", &self.runner)?;
        }
        if self.decision_sequence != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("decision_sequence", ToString::to_string(&self.decision_sequence).as_str())?;
        }
        if !self.actions.is_empty() {
            struct_ser.serialize_field("actions", &self.actions)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ToolInvoke {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "runner",
            "decision_sequence",
            "decisionSequence",
            "actions",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Runner,
            DecisionSequence,
            Actions,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "runner" => Ok(GeneratedField::Runner),
                            "decisionSequence" | "decision_sequence" => Ok(GeneratedField::DecisionSequence),
                            "actions" => Ok(GeneratedField::Actions),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ToolInvoke;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ToolInvoke")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ToolInvoke, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut runner__ = None;
                let mut decision_sequence__ = None;
                let mut actions__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Runner => {
                            if runner__.is_some() {
                                return Err(serde::de::Error::duplicate_field("runner"));
                            }
                            runner__ = Some(map_.next_value()?);
                        }
                        GeneratedField::DecisionSequence => {
                            if decision_sequence__.is_some() {
                                return Err(serde::de::Error::duplicate_field("decisionSequence"));
                            }
                            decision_sequence__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Actions => {
                            if actions__.is_some() {
                                return Err(serde::de::Error::duplicate_field("actions"));
                            }
                            actions__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ToolInvoke {
                    runner: runner__.unwrap_or_default(),
                    decision_sequence: decision_sequence__.unwrap_or_default(),
                    actions: actions__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ToolInvoke", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ToolProgress {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.action_id.is_empty() {
            len += 1;
        }
        if !self.tool.is_empty() {
            len += 1;
        }
        if !self.runner.is_empty() {
            len += 1;
        }
        if self.fraction.is_some() {
            len += 1;
        }
        if !self.message.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.ToolProgress", len)?;
        if !self.action_id.is_empty() {
            struct_ser.serialize_field("action_id", &self.action_id)?;
        }
        if !self.tool.is_empty() {
            struct_ser.serialize_field("tool", &self.tool)?;
        }
        if !self.runner.is_empty() {
            struct_ser.serialize_field("runner", &self.runner)?;
        }
        if let Some(v) = self.fraction.as_ref() {
            struct_ser.serialize_field("fraction", v)?;
        }
        if !self.message.is_empty() {
            struct_ser.serialize_field("message", &self.message)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ToolProgress {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "action_id",
            "actionId",
            "tool",
            "runner",
            "fraction",
            "message",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            ActionId,
            Tool,
            Runner,
            Fraction,
            Message,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "actionId" | "action_id" => Ok(GeneratedField::ActionId),
                            "tool" => Ok(GeneratedField::Tool),
                            "runner" => Ok(GeneratedField::Runner),
                            "fraction" => Ok(GeneratedField::Fraction),
                            "message" => Ok(GeneratedField::Message),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ToolProgress;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ToolProgress")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ToolProgress, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut action_id__ = None;
                let mut tool__ = None;
                let mut runner__ = None;
                let mut fraction__ = None;
                let mut message__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::ActionId => {
                            if action_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("actionId"));
                            }
                            action_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Tool => {
                            if tool__.is_some() {
                                return Err(serde::de::Error::duplicate_field("tool"));
                            }
                            tool__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Runner => {
                            if runner__.is_some() {
                                return Err(serde::de::Error::duplicate_field("runner"));
                            }
                            runner__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Fraction => {
                            if fraction__.is_some() {
                                return Err(serde::de::Error::duplicate_field("fraction"));
                            }
                            fraction__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::Message => {
                            if message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("message"));
                            }
                            message__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ToolProgress {
                    action_id: action_id__.unwrap_or_default(),
                    tool: tool__.unwrap_or_default(),
                    runner: runner__.unwrap_or_default(),
                    fraction: fraction__,
                    message: message__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ToolProgress", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ToolResult {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.action_id.is_empty() {
            len += 1;
        }
        if !self.tool.is_empty() {
            len += 1;
        }
        if self.ok {
            len += 1;
        }
        if !self.result.is_empty() {
            len += 1;
        }
        if self.error.is_some() {
            len += 1;
        }
        if self.duration_ms != 0 {
            len += 1;
        }
        if !self.runner.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.ToolResult", len)?;
        if !self.action_id.is_empty() {
            struct_ser.serialize_field("action_id", &self.action_id)?;
        }
        if !self.tool.is_empty() {
            struct_ser.serialize_field("tool", &self.tool)?;
        }
        if self.ok {
            struct_ser.serialize_field("ok", &self.ok)?;
        }
        if !self.result.is_empty() {
            struct_ser.serialize_field("result", &self.result)?;
        }
        if let Some(v) = self.error.as_ref() {
            struct_ser.serialize_field("error", v)?;
        }
        if self.duration_ms != 0 {
            struct_ser.serialize_field("duration_ms", &self.duration_ms)?;
        }
        if !self.runner.is_empty() {
            struct_ser.serialize_field("runner", &self.runner)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ToolResult {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "action_id",
            "actionId",
            "tool",
            "ok",
            "result",
            "error",
            "duration_ms",
            "durationMs",
            "runner",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            ActionId,
            Tool,
            Ok,
            Result,
            Error,
            DurationMs,
            Runner,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "actionId" | "action_id" => Ok(GeneratedField::ActionId),
                            "tool" => Ok(GeneratedField::Tool),
                            "ok" => Ok(GeneratedField::Ok),
                            "result" => Ok(GeneratedField::Result),
                            "error" => Ok(GeneratedField::Error),
                            "durationMs" | "duration_ms" => Ok(GeneratedField::DurationMs),
                            "runner" => Ok(GeneratedField::Runner),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ToolResult;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ToolResult")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ToolResult, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut action_id__ = None;
                let mut tool__ = None;
                let mut ok__ = None;
                let mut result__ = None;
                let mut error__ = None;
                let mut duration_ms__ = None;
                let mut runner__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::ActionId => {
                            if action_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("actionId"));
                            }
                            action_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Tool => {
                            if tool__.is_some() {
                                return Err(serde::de::Error::duplicate_field("tool"));
                            }
                            tool__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Ok => {
                            if ok__.is_some() {
                                return Err(serde::de::Error::duplicate_field("ok"));
                            }
                            ok__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Result => {
                            if result__.is_some() {
                                return Err(serde::de::Error::duplicate_field("result"));
                            }
                            result__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Error => {
                            if error__.is_some() {
                                return Err(serde::de::Error::duplicate_field("error"));
                            }
                            error__ = map_.next_value()?;
                        }
                        GeneratedField::DurationMs => {
                            if duration_ms__.is_some() {
                                return Err(serde::de::Error::duplicate_field("durationMs"));
                            }
                            duration_ms__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Runner => {
                            if runner__.is_some() {
                                return Err(serde::de::Error::duplicate_field("runner"));
                            }
                            runner__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ToolResult {
                    action_id: action_id__.unwrap_or_default(),
                    tool: tool__.unwrap_or_default(),
                    ok: ok__.unwrap_or_default(),
                    result: result__.unwrap_or_default(),
                    error: error__,
                    duration_ms: duration_ms__.unwrap_or_default(),
                    runner: runner__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ToolResult", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ToolSpec {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.name.is_empty() {
            len += 1;
        }
        if !self.description.is_empty() {
            len += 1;
        }
        if !self.schema.is_empty() {
            len += 1;
        }
        if self.idempotent {
            len += 1;
        }
        if self.timeout_ms != 0 {
            len += 1;
        }
        if !self.executor.is_empty() {
            len += 1;
        }
        if self.needs_approval {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.ToolSpec", len)?;
        if !self.name.is_empty() {
            struct_ser.serialize_field("name", &self.name)?;
        }
        if !self.description.is_empty() {
            struct_ser.serialize_field("description", &self.description)?;
        }
        if !self.schema.is_empty() {
            struct_ser.serialize_field("schema", &self.schema)?;
        }
        if self.idempotent {
            struct_ser.serialize_field("idempotent", &self.idempotent)?;
        }
        if self.timeout_ms != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("timeout_ms", ToString::to_string(&self.timeout_ms).as_str())?;
        }
        if !self.executor.is_empty() {
            struct_ser.serialize_field("executor", &self.executor)?;
        }
        if self.needs_approval {
            struct_ser.serialize_field("needs_approval", &self.needs_approval)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ToolSpec {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "name",
            "description",
            "schema",
            "idempotent",
            "timeout_ms",
            "timeoutMs",
            "executor",
            "needs_approval",
            "needsApproval",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Name,
            Description,
            Schema,
            Idempotent,
            TimeoutMs,
            Executor,
            NeedsApproval,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "name" => Ok(GeneratedField::Name),
                            "description" => Ok(GeneratedField::Description),
                            "schema" => Ok(GeneratedField::Schema),
                            "idempotent" => Ok(GeneratedField::Idempotent),
                            "timeoutMs" | "timeout_ms" => Ok(GeneratedField::TimeoutMs),
                            "executor" => Ok(GeneratedField::Executor),
                            "needsApproval" | "needs_approval" => Ok(GeneratedField::NeedsApproval),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ToolSpec;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.ToolSpec")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ToolSpec, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut name__ = None;
                let mut description__ = None;
                let mut schema__ = None;
                let mut idempotent__ = None;
                let mut timeout_ms__ = None;
                let mut executor__ = None;
                let mut needs_approval__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Name => {
                            if name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("name"));
                            }
                            name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Description => {
                            if description__.is_some() {
                                return Err(serde::de::Error::duplicate_field("description"));
                            }
                            description__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Schema => {
                            if schema__.is_some() {
                                return Err(serde::de::Error::duplicate_field("schema"));
                            }
                            schema__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Idempotent => {
                            if idempotent__.is_some() {
                                return Err(serde::de::Error::duplicate_field("idempotent"));
                            }
                            idempotent__ = Some(map_.next_value()?);
                        }
                        GeneratedField::TimeoutMs => {
                            if timeout_ms__.is_some() {
                                return Err(serde::de::Error::duplicate_field("timeoutMs"));
                            }
                            timeout_ms__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Executor => {
                            if executor__.is_some() {
                                return Err(serde::de::Error::duplicate_field("executor"));
                            }
                            executor__ = Some(map_.next_value()?);
                        }
                        GeneratedField::NeedsApproval => {
                            if needs_approval__.is_some() {
                                return Err(serde::de::Error::duplicate_field("needsApproval"));
                            }
                            needs_approval__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ToolSpec {
                    name: name__.unwrap_or_default(),
                    description: description__.unwrap_or_default(),
                    schema: schema__.unwrap_or_default(),
                    idempotent: idempotent__.unwrap_or_default(),
                    timeout_ms: timeout_ms__.unwrap_or_default(),
                    executor: executor__.unwrap_or_default(),
                    needs_approval: needs_approval__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.ToolSpec", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for UserApproval {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.approval_id.is_empty() {
            len += 1;
        }
        if !self.user.is_empty() {
            len += 1;
        }
        if !self.agent.is_empty() {
            len += 1;
        }
        if !self.action_id.is_empty() {
            len += 1;
        }
        if !self.verdict.is_empty() {
            len += 1;
        }
        if !self.note.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.UserApproval", len)?;
        if !self.approval_id.is_empty() {
            struct_ser.serialize_field("approval_id", &self.approval_id)?;
        }
        if !self.user.is_empty() {
            struct_ser.serialize_field("user", &self.user)?;
        }
        if !self.agent.is_empty() {
            struct_ser.serialize_field("agent", &self.agent)?;
        }
        if !self.action_id.is_empty() {
            struct_ser.serialize_field("action_id", &self.action_id)?;
        }
        if !self.verdict.is_empty() {
            struct_ser.serialize_field("verdict", &self.verdict)?;
        }
        if !self.note.is_empty() {
            struct_ser.serialize_field("note", &self.note)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for UserApproval {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "approval_id",
            "approvalId",
            "user",
            "agent",
            "action_id",
            "actionId",
            "verdict",
            "note",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            ApprovalId,
            User,
            Agent,
            ActionId,
            Verdict,
            Note,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "approvalId" | "approval_id" => Ok(GeneratedField::ApprovalId),
                            "user" => Ok(GeneratedField::User),
                            "agent" => Ok(GeneratedField::Agent),
                            "actionId" | "action_id" => Ok(GeneratedField::ActionId),
                            "verdict" => Ok(GeneratedField::Verdict),
                            "note" => Ok(GeneratedField::Note),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = UserApproval;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.UserApproval")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<UserApproval, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut approval_id__ = None;
                let mut user__ = None;
                let mut agent__ = None;
                let mut action_id__ = None;
                let mut verdict__ = None;
                let mut note__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::ApprovalId => {
                            if approval_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("approvalId"));
                            }
                            approval_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::User => {
                            if user__.is_some() {
                                return Err(serde::de::Error::duplicate_field("user"));
                            }
                            user__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Agent => {
                            if agent__.is_some() {
                                return Err(serde::de::Error::duplicate_field("agent"));
                            }
                            agent__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ActionId => {
                            if action_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("actionId"));
                            }
                            action_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Verdict => {
                            if verdict__.is_some() {
                                return Err(serde::de::Error::duplicate_field("verdict"));
                            }
                            verdict__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Note => {
                            if note__.is_some() {
                                return Err(serde::de::Error::duplicate_field("note"));
                            }
                            note__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(UserApproval {
                    approval_id: approval_id__.unwrap_or_default(),
                    user: user__.unwrap_or_default(),
                    agent: agent__.unwrap_or_default(),
                    action_id: action_id__.unwrap_or_default(),
                    verdict: verdict__.unwrap_or_default(),
                    note: note__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.UserApproval", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for UserChoice {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.choice_id.is_empty() {
            len += 1;
        }
        if !self.user.is_empty() {
            len += 1;
        }
        if !self.agent.is_empty() {
            len += 1;
        }
        if !self.offer_id.is_empty() {
            len += 1;
        }
        if !self.option.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.UserChoice", len)?;
        if !self.choice_id.is_empty() {
            struct_ser.serialize_field("choice_id", &self.choice_id)?;
        }
        if !self.user.is_empty() {
            struct_ser.serialize_field("user", &self.user)?;
        }
        if !self.agent.is_empty() {
            struct_ser.serialize_field("agent", &self.agent)?;
        }
        if !self.offer_id.is_empty() {
            struct_ser.serialize_field("offer_id", &self.offer_id)?;
        }
        if !self.option.is_empty() {
            struct_ser.serialize_field("option", &self.option)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for UserChoice {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "choice_id",
            "choiceId",
            "user",
            "agent",
            "offer_id",
            "offerId",
            "option",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            ChoiceId,
            User,
            Agent,
            OfferId,
            Option,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "choiceId" | "choice_id" => Ok(GeneratedField::ChoiceId),
                            "user" => Ok(GeneratedField::User),
                            "agent" => Ok(GeneratedField::Agent),
                            "offerId" | "offer_id" => Ok(GeneratedField::OfferId),
                            "option" => Ok(GeneratedField::Option),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = UserChoice;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.UserChoice")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<UserChoice, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut choice_id__ = None;
                let mut user__ = None;
                let mut agent__ = None;
                let mut offer_id__ = None;
                let mut option__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::ChoiceId => {
                            if choice_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("choiceId"));
                            }
                            choice_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::User => {
                            if user__.is_some() {
                                return Err(serde::de::Error::duplicate_field("user"));
                            }
                            user__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Agent => {
                            if agent__.is_some() {
                                return Err(serde::de::Error::duplicate_field("agent"));
                            }
                            agent__ = Some(map_.next_value()?);
                        }
                        GeneratedField::OfferId => {
                            if offer_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("offerId"));
                            }
                            offer_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Option => {
                            if option__.is_some() {
                                return Err(serde::de::Error::duplicate_field("option"));
                            }
                            option__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(UserChoice {
                    choice_id: choice_id__.unwrap_or_default(),
                    user: user__.unwrap_or_default(),
                    agent: agent__.unwrap_or_default(),
                    offer_id: offer_id__.unwrap_or_default(),
                    option: option__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.UserChoice", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for UserCommand {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.command_id.is_empty() {
            len += 1;
        }
        if !self.user.is_empty() {
            len += 1;
        }
        if !self.agent.is_empty() {
            len += 1;
        }
        if !self.command.is_empty() {
            len += 1;
        }
        if !self.action_id.is_empty() {
            len += 1;
        }
        if !self.process_id.is_empty() {
            len += 1;
        }
        if !self.chain_id.is_empty() {
            len += 1;
        }
        if !self.task_id.is_empty() {
            len += 1;
        }
        if !self.thread_id.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.UserCommand", len)?;
        if !self.command_id.is_empty() {
            struct_ser.serialize_field("command_id", &self.command_id)?;
        }
        if !self.user.is_empty() {
            struct_ser.serialize_field("user", &self.user)?;
        }
        if !self.agent.is_empty() {
            struct_ser.serialize_field("agent", &self.agent)?;
        }
        if !self.command.is_empty() {
            struct_ser.serialize_field("command", &self.command)?;
        }
        if !self.action_id.is_empty() {
            struct_ser.serialize_field("action_id", &self.action_id)?;
        }
        if !self.process_id.is_empty() {
            struct_ser.serialize_field("process_id", &self.process_id)?;
        }
        if !self.chain_id.is_empty() {
            struct_ser.serialize_field("chain_id", &self.chain_id)?;
        }
        if !self.task_id.is_empty() {
            struct_ser.serialize_field("task_id", &self.task_id)?;
        }
        if !self.thread_id.is_empty() {
            struct_ser.serialize_field("thread_id", &self.thread_id)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for UserCommand {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "command_id",
            "commandId",
            "user",
            "agent",
            "command",
            "action_id",
            "actionId",
            "process_id",
            "processId",
            "chain_id",
            "chainId",
            "task_id",
            "taskId",
            "thread_id",
            "threadId",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            CommandId,
            User,
            Agent,
            Command,
            ActionId,
            ProcessId,
            ChainId,
            TaskId,
            ThreadId,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "commandId" | "command_id" => Ok(GeneratedField::CommandId),
                            "user" => Ok(GeneratedField::User),
                            "agent" => Ok(GeneratedField::Agent),
                            "command" => Ok(GeneratedField::Command),
                            "actionId" | "action_id" => Ok(GeneratedField::ActionId),
                            "processId" | "process_id" => Ok(GeneratedField::ProcessId),
                            "chainId" | "chain_id" => Ok(GeneratedField::ChainId),
                            "taskId" | "task_id" => Ok(GeneratedField::TaskId),
                            "threadId" | "thread_id" => Ok(GeneratedField::ThreadId),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = UserCommand;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.UserCommand")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<UserCommand, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut command_id__ = None;
                let mut user__ = None;
                let mut agent__ = None;
                let mut command__ = None;
                let mut action_id__ = None;
                let mut process_id__ = None;
                let mut chain_id__ = None;
                let mut task_id__ = None;
                let mut thread_id__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::CommandId => {
                            if command_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("commandId"));
                            }
                            command_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::User => {
                            if user__.is_some() {
                                return Err(serde::de::Error::duplicate_field("user"));
                            }
                            user__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Agent => {
                            if agent__.is_some() {
                                return Err(serde::de::Error::duplicate_field("agent"));
                            }
                            agent__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Command => {
                            if command__.is_some() {
                                return Err(serde::de::Error::duplicate_field("command"));
                            }
                            command__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ActionId => {
                            if action_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("actionId"));
                            }
                            action_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ProcessId => {
                            if process_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("processId"));
                            }
                            process_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ChainId => {
                            if chain_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("chainId"));
                            }
                            chain_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::TaskId => {
                            if task_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("taskId"));
                            }
                            task_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ThreadId => {
                            if thread_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("threadId"));
                            }
                            thread_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(UserCommand {
                    command_id: command_id__.unwrap_or_default(),
                    user: user__.unwrap_or_default(),
                    agent: agent__.unwrap_or_default(),
                    command: command__.unwrap_or_default(),
                    action_id: action_id__.unwrap_or_default(),
                    process_id: process_id__.unwrap_or_default(),
                    chain_id: chain_id__.unwrap_or_default(),
                    task_id: task_id__.unwrap_or_default(),
                    thread_id: thread_id__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.UserCommand", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for UserMessage {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.message_id.is_empty() {
            len += 1;
        }
        if !self.user.is_empty() {
            len += 1;
        }
        if !self.agent.is_empty() {
            len += 1;
        }
        if !self.text.is_empty() {
            len += 1;
        }
        if !self.thread_id.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.UserMessage", len)?;
        if !self.message_id.is_empty() {
            struct_ser.serialize_field("message_id", &self.message_id)?;
        }
        if !self.user.is_empty() {
            struct_ser.serialize_field("user", &self.user)?;
        }
        if !self.agent.is_empty() {
            struct_ser.serialize_field("agent", &self.agent)?;
        }
        if !self.text.is_empty() {
            struct_ser.serialize_field("text", &self.text)?;
        }
        if !self.thread_id.is_empty() {
            struct_ser.serialize_field("thread_id", &self.thread_id)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for UserMessage {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "message_id",
            "messageId",
            "user",
            "agent",
            "text",
            "thread_id",
            "threadId",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            MessageId,
            User,
            Agent,
            Text,
            ThreadId,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "messageId" | "message_id" => Ok(GeneratedField::MessageId),
                            "user" => Ok(GeneratedField::User),
                            "agent" => Ok(GeneratedField::Agent),
                            "text" => Ok(GeneratedField::Text),
                            "threadId" | "thread_id" => Ok(GeneratedField::ThreadId),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = UserMessage;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.UserMessage")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<UserMessage, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut message_id__ = None;
                let mut user__ = None;
                let mut agent__ = None;
                let mut text__ = None;
                let mut thread_id__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::MessageId => {
                            if message_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("messageId"));
                            }
                            message_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::User => {
                            if user__.is_some() {
                                return Err(serde::de::Error::duplicate_field("user"));
                            }
                            user__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Agent => {
                            if agent__.is_some() {
                                return Err(serde::de::Error::duplicate_field("agent"));
                            }
                            agent__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Text => {
                            if text__.is_some() {
                                return Err(serde::de::Error::duplicate_field("text"));
                            }
                            text__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ThreadId => {
                            if thread_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("threadId"));
                            }
                            thread_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(UserMessage {
                    message_id: message_id__.unwrap_or_default(),
                    user: user__.unwrap_or_default(),
                    agent: agent__.unwrap_or_default(),
                    text: text__.unwrap_or_default(),
                    thread_id: thread_id__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.UserMessage", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for UserMessageUndelivered {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.message_id.is_empty() {
            len += 1;
        }
        if !self.user.is_empty() {
            len += 1;
        }
        if !self.agent.is_empty() {
            len += 1;
        }
        if !self.reason.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("kairo.v1.UserMessageUndelivered", len)?;
        if !self.message_id.is_empty() {
            struct_ser.serialize_field("message_id", &self.message_id)?;
        }
        if !self.user.is_empty() {
            struct_ser.serialize_field("user", &self.user)?;
        }
        if !self.agent.is_empty() {
            struct_ser.serialize_field("agent", &self.agent)?;
        }
        if !self.reason.is_empty() {
            struct_ser.serialize_field("reason", &self.reason)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for UserMessageUndelivered {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "message_id",
            "messageId",
            "user",
            "agent",
            "reason",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            MessageId,
            User,
            Agent,
            Reason,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "messageId" | "message_id" => Ok(GeneratedField::MessageId),
                            "user" => Ok(GeneratedField::User),
                            "agent" => Ok(GeneratedField::Agent),
                            "reason" => Ok(GeneratedField::Reason),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = UserMessageUndelivered;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct kairo.v1.UserMessageUndelivered")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<UserMessageUndelivered, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut message_id__ = None;
                let mut user__ = None;
                let mut agent__ = None;
                let mut reason__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::MessageId => {
                            if message_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("messageId"));
                            }
                            message_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::User => {
                            if user__.is_some() {
                                return Err(serde::de::Error::duplicate_field("user"));
                            }
                            user__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Agent => {
                            if agent__.is_some() {
                                return Err(serde::de::Error::duplicate_field("agent"));
                            }
                            agent__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Reason => {
                            if reason__.is_some() {
                                return Err(serde::de::Error::duplicate_field("reason"));
                            }
                            reason__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(UserMessageUndelivered {
                    message_id: message_id__.unwrap_or_default(),
                    user: user__.unwrap_or_default(),
                    agent: agent__.unwrap_or_default(),
                    reason: reason__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("kairo.v1.UserMessageUndelivered", FIELDS, GeneratedVisitor)
    }
}
