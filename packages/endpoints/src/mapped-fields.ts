/** A field as a mapping shows it, as far as anybody here looks at it. */
export interface Property {
  readonly type?: string;
  readonly properties?: Properties;
  readonly fields?: Properties;
  readonly inference_id?: string;
  readonly copy_to?: string | readonly string[];
  readonly model_settings?: { readonly task_type?: string };
}

/** The fields of a mapping, or of an object in it. */
export type Properties = Readonly<Record<string, Property>>;

/** A field that holds values, with its full name. */
export type Leaf = readonly [name: string, property: Property];

/** All fields of a mapping that hold values, those in objects and the sub-fields of other fields among them. */
export function leaves(properties: Properties, prefix = ''): Leaf[] {
  return Object.entries(properties).flatMap(([name, property]) => [
    ...(['object', 'nested', undefined].includes(property.type) ? [] : [[prefix + name, property] as const]),
    // Fields inside a `nested` field are found only by a `nested` query.
    ...(property.type === 'nested' ? [] : leaves(property.properties ?? {}, `${prefix}${name}.`)),
    ...leaves(property.fields ?? {}, `${prefix}${name}.`),
  ]);
}
