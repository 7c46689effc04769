export interface ComputeThingConfig extends cdktf.TerraformMetaArguments {
    /**
    * Docs: {@link https://example.com/thing#name ComputeThing#name}
    */
    readonly name: string;
    /**
    * Docs: {@link https://example.com/thing#tags ComputeThing#tags}
    */
    readonly tags?: string[];
    /**
    * disk block
    *
    * Docs: {@link https://example.com/thing#disk ComputeThing#disk}
    */
    readonly disk: ComputeThingDisk[] | cdktf.IResolvable;
    /**
    * Docs: {@link https://example.com/thing#timeouts ComputeThing#timeouts}
    */
    readonly timeouts?: ComputeThingTimeouts;
}
export interface ComputeThingDisk {
    /**
    * Docs: {@link https://example.com/thing#size ComputeThing#size}
    */
    readonly size: number;
    /**
    * Docs: {@link https://example.com/thing#key ComputeThing#key}
    */
    readonly key?: ComputeThingDiskKey;
}
export interface ComputeThingDiskKey {
    /**
    * Docs: {@link https://example.com/thing#raw ComputeThing#raw}
    */
    readonly raw?: boolean | cdktf.IResolvable;
}
export interface ComputeThingTimeouts {
    /**
    * Docs: {@link https://example.com/thing#create ComputeThing#create}
    */
    readonly create?: string;
}
