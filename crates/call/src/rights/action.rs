//! Actions on indices, for which privileges are granted.

use serde::{Deserialize, Serialize};

/// Declares the [`Action`] enum with the names under which the HTTP layer knows the actions.
macro_rules! actions {
    ($($(#[$about:meta])* $variant:ident = $name:literal,)+) => {
        /// An action on indices, by the name that the sentence of a refusal gives it. The HTTP layer's table says which
        /// privileges grant it; a test there holds the two lists equal.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Action {
            $($(#[$about])* #[serde(rename = $name)] $variant,)+
        }

        impl Action {
            /// The action's name in messages and in the HTTP layer, such as `indices:data/read/search`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

actions! {
    CreateIndex = "indices:admin/create",
    /// Creating an index implicitly by writing to it.
    AutoCreate = "indices:admin/auto_create",
    GetIndex = "indices:admin/get",
    DeleteIndex = "indices:admin/delete",
    GetMapping = "indices:admin/mappings/get",
    PutMapping = "indices:admin/mapping/put",
    GetSettings = "indices:monitor/settings/get",
    PutSettings = "indices:admin/settings/update",
    Analyze = "indices:admin/analyze",
    /// Changing aliases: needed on the indices and on the aliases.
    Aliases = "indices:admin/aliases",
    GetAliases = "indices:admin/aliases/get",
    Close = "indices:admin/close",
    Open = "indices:admin/open",
    AddBlock = "indices:admin/block/add",
    RemoveBlock = "indices:admin/block/remove",
    ForceMerge = "indices:admin/forcemerge",
    ClearCache = "indices:admin/cache/clear",
    ResolveIndex = "indices:admin/resolve/index",
    GetDataStream = "indices:admin/data_stream/get",
    CreateDataStream = "indices:admin/data_stream/create",
    DeleteDataStream = "indices:admin/data_stream/delete",
    Rollover = "indices:admin/rollover",
    Resize = "indices:admin/resize",
    /// Changing the model of a field, and each step of that.
    ChangeModel = "indices:admin/ext/model/change",
    GetFieldModels = "indices:admin/ext/model/get",
    Refresh = "indices:admin/refresh",
    Flush = "indices:admin/flush",
    Segments = "indices:monitor/segments",
    Recovery = "indices:monitor/recovery",
    Stats = "indices:monitor/stats",
    Search = "indices:data/read/search",
    Explain = "indices:data/read/explain",
    MultiSearch = "indices:data/read/msearch",
    RankEval = "indices:data/read/rank_eval",
    Scroll = "indices:data/read/scroll",
    ClearScroll = "indices:data/read/scroll/clear",
    OpenPointInTime = "indices:data/read/open_point_in_time",
    ClosePointInTime = "indices:data/read/close_point_in_time",
    FieldCaps = "indices:data/read/field_caps",
    TermsEnum = "indices:data/read/xpack/termsenum/list",
    TermVectors = "indices:data/read/tv",
    MultiTermVectors = "indices:data/read/mtv",
    ValidateQuery = "indices:admin/validate/query",
    SearchShards = "indices:admin/shards/search_shards",
    GetFieldMapping = "indices:admin/mappings/fields/get",
    /// Reading a document by its id, including documents that a query refers to by id.
    Get = "indices:data/read/get",
    MultiGet = "indices:data/read/mget",
    /// Any write of a whole document; depending on the write, one of the next two is needed too.
    Index = "indices:data/write/index",
    /// Adding a document whose id does not exist yet, or that has no id.
    Create = "indices:data/write/index:op_type/create",
    /// Writing a document whether or not its id exists.
    Overwrite = "indices:data/write/index:op_type/index",
    Update = "indices:data/write/update",
    Delete = "indices:data/write/delete",
    Bulk = "indices:data/write/bulk",
    Reindex = "indices:data/write/reindex",
    UpdateByQuery = "indices:data/write/update/byquery",
    DeleteByQuery = "indices:data/write/delete/byquery",
}
